"""OTLP in: gRPC and HTTP requests become sealed spans in a store, and the sender hears what became of them.

Bytes → :mod:`.protobuf` or :mod:`.json` → :class:`.receiver.Receiver` → a store. :mod:`.http` and :mod:`.grpc` are the two transports;
neither knows how a span looks, and the receiver knows neither of them.
"""
