"""Redaction: secrets and personal data are replaced before anything is stored or published (reliability S8)."""
