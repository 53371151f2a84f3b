"""A client that knows nothing but reflection finds the services, learns their messages and calls them.

    python reflect.py HOST:PORT
"""

import sys

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

ADDRESS = sys.argv[1]
SERVICES = {
    "inference.GRPCInferenceService",
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
}

with grpc.insecure_channel(ADDRESS) as channel:
    database = ProtoReflectionDescriptorDatabase(channel)
    assert set(database.get_services()) == SERVICES, database.get_services()
    pool = DescriptorPool(database)

    def call(service, method, **fields):
        described = pool.FindServiceByName(service).FindMethodByName(method)
        ask = channel.unary_unary(
            f"/{service}/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=GetMessageClass(described.output_type).FromString,
        )
        return ask(GetMessageClass(described.input_type)(**fields), timeout=60)

    inference = "inference.GRPCInferenceService"
    assert call(inference, "ServerReady").ready
    assert call("grpc.health.v1.Health", "Check").status == 1
    metadata = call(inference, "ModelMetadata", name="several")
    assert [tensor.name for tensor in metadata.inputs] == ["a", "b"]
    answer = call(
        inference,
        "ModelInfer",
        model_name="int64",
        id="seven",
        inputs=[dict(name="x", datatype="INT64", shape=[1, 3], contents=dict(int64_contents=[1, 2, 3]))],
    )
    assert answer.id == "seven" and answer.raw_output_contents[0][:8] == (3).to_bytes(8, "little")
    # Every method that is described is one the server knows, and every name in it resolves.
    for service in SERVICES:
        for method in pool.FindServiceByName(service).methods:
            assert method.input_type.full_name and method.output_type.full_name

    # The other version of reflection has the same messages.
    ask = channel.stream_stream(
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    asked = [
        reflection_pb2.ServerReflectionRequest(list_services=""),
        reflection_pb2.ServerReflectionRequest(file_by_filename="health.proto"),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol="no.such.Symbol"),
    ]
    listed, found, missing = ask(iter(asked), timeout=60)
    assert {service.name for service in listed.list_services_response.service} == SERVICES
    assert found.file_descriptor_response.file_descriptor_proto
    assert missing.error_response.error_code == 5, missing
