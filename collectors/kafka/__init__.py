"""Kafka: records that carry the topology between processes. The only package that imports confluent_kafka."""
