"""What a server with keys answers without one: probes, and nothing else.

    python keys.py HOST:PORT KEY
"""

import sys

import grpc

ADDRESS, KEY = sys.argv[1:]
INFERENCE = "/inference.GRPCInferenceService/"
HEALTH = "/grpc.health.v1.Health/"

with grpc.insecure_channel(ADDRESS) as channel:

    def ask(call, message=b"", metadata=None):
        try:
            return channel.unary_unary(call)(message, metadata=metadata, timeout=60)
        except grpc.RpcError as error:
            return error.code()

    refused = grpc.StatusCode.UNAUTHENTICATED
    assert ask(HEALTH + "Check") == b"\x08\x01"
    assert ask(INFERENCE + "ServerLive") == b"\x08\x01"
    assert ask(INFERENCE + "ServerReady") == b"\x08\x01"
    watch = channel.unary_stream(HEALTH + "Watch")(b"", timeout=60)
    assert next(watch) == b"\x08\x01"
    watch.cancel()
    # Which models there are is for those with a key.
    assert ask(HEALTH + "Check", b"\x0a\x04fp32") == refused
    for call in ("ServerMetadata", "ModelReady", "ModelMetadata", "ModelInfer", "RepositoryIndex", "RepositoryModelLoad"):
        assert ask(INFERENCE + call) == refused, call
    for metadata in ((("x-api-key", KEY),), (("authorization", f"Bearer {KEY}"),)):
        assert ask(HEALTH + "Check", b"\x0a\x04fp32", metadata) == b"\x08\x01"
        assert b"cudock" in ask(INFERENCE + "ServerMetadata", b"", metadata)
    assert ask(INFERENCE + "ServerMetadata", b"", (("x-api-key", KEY + "0"),)) == refused
    reflection = channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
    try:
        next(reflection(iter([b"\x3a\x00"]), timeout=60))
        raise AssertionError("reflection without a key")
    except grpc.RpcError as error:
        assert error.code() == refused
