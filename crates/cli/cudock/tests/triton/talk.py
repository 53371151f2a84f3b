"""What the official clients of Triton are promised, over HTTP and gRPC.

    python talk.py HOST:PORT

The server serves the models of `make_models.py`.
"""

import queue
import sys
import threading
import unittest

import grpc
import ml_dtypes
import numpy as np
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
from tritonclient.utils import InferenceServerException

ADDRESS = sys.argv[1]
PATIENCE = 60
SOME = np.random.default_rng(5)


def columns(number, rows=1):
    return SOME.normal(size=(rows, number)).astype(np.float32)


def strings(*texts):
    return np.array([[text] for text in texts], dtype=np.object_)


class Promises:
    """What holds for both protocols. `module` is the client's, `client` a client."""

    def tensor(self, name, array, datatype, **settings):
        made = self.module.InferInput(name, list(array.shape), datatype)
        made.set_data_from_numpy(array, **settings)
        return made

    def ask(self, model, array, datatype, **settings):
        return self.client.infer(model, [self.tensor("x", array, datatype)], **settings)

    def refused(self, ask, *words):
        with self.assertRaises(InferenceServerException) as caught:
            ask()
        for word in words:
            self.assertIn(word, str(caught.exception))
        return caught.exception

    def test_the_server_is_live_and_ready(self):
        self.assertTrue(self.client.is_server_live())
        self.assertTrue(self.client.is_server_ready())

    def test_a_model_is_ready_if_it_is_there(self):
        self.assertTrue(self.client.is_model_ready("fp32"))
        self.assertTrue(self.client.is_model_ready("versions", "1"))
        self.assertFalse(self.client.is_model_ready("versions", "3"))
        self.assertFalse(self.client.is_model_ready("nobody"))

    def test_the_server_says_what_it_is(self):
        said = self.plain(self.client.get_server_metadata)
        self.assertEqual(said["name"], "cudock")
        self.assertIn("binary_tensor_data", said["extensions"])

    def test_a_model_says_what_it_takes_and_gives(self):
        said = self.plain(self.client.get_model_metadata, "several")
        self.assertEqual((said["name"], said["platform"]), ("several", "onnxruntime_onnx"))
        self.assertEqual([tensor["name"] for tensor in said["inputs"]], ["a", "b"])
        self.assertEqual([tensor["datatype"] for tensor in said["outputs"]], ["FP32", "INT64"])
        self.assertEqual([int(size) for size in said["inputs"][0]["shape"]], [-1, 4])
        said = self.plain(self.client.get_model_metadata, "versions")
        self.assertEqual(said["versions"], ["1", "2"])

    def test_a_models_configuration_is_in_tritons_words(self):
        said = self.plain(self.client.get_model_config, "several")
        said = said.get("config", said)
        self.assertGreater(int(said["max_batch_size"]), 1)
        self.assertEqual([tensor["data_type"] for tensor in said["input"]], ["TYPE_FP32", "TYPE_INT64"])
        self.assertEqual([[int(size) for size in tensor["dims"]] for tensor in said["output"]], [[4], [1]])
        self.assertIn("dynamic_batching", said)

    def test_statistics_count_what_was_asked(self):
        def count():
            said = self.plain(self.client.get_inference_statistics, "int64")["model_stats"][0]
            return int(said.get("inference_count", 0)), int(
                said["inference_stats"]["success"].get("count", 0)
            )

        before = count()
        for _ in range(3):
            self.ask("int64", np.ones((2, 3), np.int64), "INT64")
        self.assertEqual(count(), (before[0] + 6, before[1] + 3))

    def test_the_repository_lists_every_version(self):
        said = self.plain(self.client.get_model_repository_index)
        models = said if isinstance(said, list) else said["models"]
        self.assertIn(("versions", "2", "READY"), [(m["name"], m["version"], m["state"]) for m in models])
        self.assertEqual(len(models), 8)

    def test_a_model_is_loaded_again(self):
        self.client.load_model("fp32")
        self.refused(lambda: self.client.load_model("nobody"), "nobody")

    def test_a_model_is_unloaded_until_it_is_loaded_again(self):
        sent = np.array([[1.5, -2.0]], ml_dtypes.bfloat16)
        self.client.unload_model("bf16")
        self.assertFalse(self.client.is_model_ready("bf16"))
        self.refused(lambda: self.ask("bf16", sent, "BF16"), "unloaded")
        self.client.load_model("bf16")
        self.assertTrue(self.client.is_model_ready("bf16"))
        self.assertEqual(self.ask("bf16", sent, "BF16").as_numpy("y").tobytes(), sent.tobytes())
        self.refused(lambda: self.client.unload_model("nobody"), "nobody")

    def test_floats(self):
        for rows in (1, 7, 40):
            sent = columns(5, rows)
            answer = self.ask("fp32", sent, "FP32")
            np.testing.assert_array_equal(answer.as_numpy("y"), sent * 2)

    def test_floats_that_json_has_no_word_for(self):
        sent = np.array([[np.nan, np.inf, -np.inf, -0.0]], np.float32)
        np.testing.assert_array_equal(self.ask("fp32", sent, "FP32").as_numpy("y"), sent * 2)

    def test_whole_numbers(self):
        sent = np.array([[1, -2, 2**61]], np.int64)
        np.testing.assert_array_equal(self.ask("int64", sent, "INT64").as_numpy("y"), sent * 3)

    def test_half_precision(self):
        sent = np.array([[0.5, -3.0], [1024.0, 6e-8]], np.float16)
        answer = self.ask("fp16", sent, "FP16").as_numpy("y")
        self.assertEqual(answer.dtype, np.float16)
        np.testing.assert_array_equal(answer, sent * np.float16(2))

    def test_the_other_half_precision(self):
        sent = np.array([[1.5, -2.0], [3e38, 1e-30]], ml_dtypes.bfloat16)
        answer = self.ask("bf16", sent, "BF16").as_numpy("y")
        self.assertEqual(answer.tobytes(), sent.tobytes())

    def test_strings(self):
        answer = self.ask("bytes", strings("hi", "", "Grüße"), "BYTES").as_numpy("y")
        self.assertEqual(answer.tolist(), [[b"hi!"], [b"!"], ["Grüße!".encode()]])

    def test_several_inputs_and_outputs(self):
        a, b = columns(4, 3), np.array([[1], [2], [-3]], np.int64)
        inputs = [self.tensor("b", b, "INT64"), self.tensor("a", a, "FP32")]
        answer = self.client.infer("several", inputs)
        np.testing.assert_array_equal(answer.as_numpy("total"), a + b.astype(np.float32))
        np.testing.assert_array_equal(answer.as_numpy("twice"), b * 2)

    def test_only_the_outputs_asked_for_come(self):
        inputs = [
            self.tensor("a", columns(4), "FP32"),
            self.tensor("b", np.array([[21]], np.int64), "INT64"),
        ]
        answer = self.client.infer("several", inputs, outputs=[self.module.InferRequestedOutput("twice")])
        self.assertEqual(answer.as_numpy("twice").tolist(), [[42]])
        self.assertIsNone(answer.as_numpy("total"))

    def test_the_request_is_named_in_the_answer(self):
        answer = self.ask("fp32", columns(1), "FP32", request_id="seven")
        said = self.response(answer)
        self.assertEqual((said["id"], said["model_name"]), ("seven", "fp32"))

    def test_the_newest_version_answers_unless_another_is_asked_for(self):
        one = np.ones((1, 1), np.float32)
        for version, factor in (("", 20), ("1", 10), ("2", 20)):
            answer = self.ask("versions", one, "FP32", model_version=version)
            self.assertEqual(answer.as_numpy("y").tolist(), [[factor]])
        self.refused(lambda: self.ask("versions", one, "FP32", model_version="3"), "versions", "3")

    def test_mistakes_are_named(self):
        right = columns(4), np.ones((1, 1), np.int64)

        def several(a=right[0], b=right[1], outputs=None):
            inputs = [self.tensor("a", a, "FP32"), self.tensor("b", b, "INT64")]
            return lambda: self.client.infer("several", inputs, outputs=outputs)

        several()()
        self.refused(several(a=columns(5)), "a", "4", "5")
        self.refused(several(a=columns(4, 2)), "rows")
        self.refused(several(outputs=[self.module.InferRequestedOutput("third")]), "third")
        self.refused(lambda: self.ask("nobody", columns(4), "FP32"), "nobody")
        self.refused(lambda: self.ask("int64", columns(3), "FP32"), "INT64", "FP32")
        self.refused(lambda: self.ask("several", columns(4), "FP32"), "x")

    def test_a_priority_and_a_timeout_are_taken(self):
        sent = columns(4)
        answer = self.ask("fp32", sent, "FP32", priority=1, timeout=30_000_000)
        np.testing.assert_array_equal(answer.as_numpy("y"), sent * 2)

    def test_large_tensors(self):
        sent = columns(1000, 3000)
        np.testing.assert_array_equal(self.ask("fp32", sent, "FP32").as_numpy("y"), sent * 2)

    def test_many_clients_get_each_its_own_answer(self):
        wrong = []

        def work(number):
            client = self.connect()
            for turn in range(25):
                sent = np.full((1 + (number + turn) % 3, 3), 1000 * number + turn, np.int64)
                inputs = [self.tensor("x", sent, "INT64")]
                if client.infer("int64", inputs).as_numpy("y").tolist() != (sent * 3).tolist():
                    wrong.append((number, turn))
            client.close()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Http(Promises, unittest.TestCase):
    module = tritonclient.http

    @staticmethod
    def connect(**settings):
        return tritonclient.http.InferenceServerClient(ADDRESS, network_timeout=PATIENCE, **settings)

    def setUp(self):
        self.client = self.connect(concurrency=8)

    def tearDown(self):
        self.client.close()

    @staticmethod
    def plain(ask, *words):
        return ask(*words)

    @staticmethod
    def response(answer):
        return answer.get_response()

    def test_tensors_as_json(self):
        for model, sent, datatype, expected in [
            ("fp32", columns(6, 2), "FP32", lambda x: (x * 2).tolist()),
            ("int64", np.array([[1, 2, -3]], np.int64), "INT64", lambda x: (x * 3).tolist()),
            ("bytes", strings("a", 'q"\\\n'), "BYTES", lambda x: [[text + "!"] for [text] in x.tolist()]),
        ]:
            for binary_in, binary_out in ((False, False), (False, True), (True, False)):
                inputs = [self.tensor("x", sent, datatype, binary_data=binary_in)]
                wanted = [tritonclient.http.InferRequestedOutput("y", binary_data=binary_out)]
                answer = self.client.infer(model, inputs, outputs=wanted).as_numpy("y").tolist()
                if datatype == "BYTES":
                    answer = [[t.decode() if isinstance(t, bytes) else t for t in row] for row in answer]
                self.assertEqual(answer, expected(sent), (model, binary_in, binary_out))

    def test_compressed_requests_and_answers(self):
        sent = np.tile(columns(10), (50, 100))
        for request in (None, "gzip", "deflate"):
            for answer in (None, "gzip", "deflate"):
                got = self.ask(
                    "fp32",
                    sent,
                    "FP32",
                    request_compression_algorithm=request,
                    response_compression_algorithm=answer,
                )
                np.testing.assert_array_equal(got.as_numpy("y"), sent * 2)

    def test_requests_that_are_not_waited_for(self):
        sent = [np.full((1, 3), number, np.int64) for number in range(40)]
        asked = [self.client.async_infer("int64", [self.tensor("x", x, "INT64")]) for x in sent]
        for x, pending in zip(sent, asked):
            np.testing.assert_array_equal(pending.get_result().as_numpy("y"), x * 3)


class Grpc(Promises, unittest.TestCase):
    module = tritonclient.grpc

    @staticmethod
    def connect():
        return tritonclient.grpc.InferenceServerClient(ADDRESS)

    def setUp(self):
        self.client = self.connect()

    def tearDown(self):
        self.client.close()

    @staticmethod
    def plain(ask, *words):
        return ask(*words, as_json=True)

    @staticmethod
    def response(answer):
        return answer.get_response(as_json=True)

    def test_compressed_requests_and_answers(self):
        sent = np.tile(columns(10), (50, 100))
        for compression in ("gzip", "deflate"):
            got = self.ask("fp32", sent, "FP32", compression_algorithm=compression)
            np.testing.assert_array_equal(got.as_numpy("y"), sent * 2)

    def test_tensors_as_numbers_of_protobuf(self):
        from tritonclient.grpc import service_pb2, service_pb2_grpc

        with grpc.insecure_channel(ADDRESS) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            request = service_pb2.ModelInferRequest(model_name="several")
            a = request.inputs.add(name="a", datatype="FP32", shape=[1, 4])
            a.contents.fp32_contents.extend([1, 2, 3, 4])
            b = request.inputs.add(name="b", datatype="INT64", shape=[1, 1])
            b.contents.int64_contents.append(-5)
            answer = stub.ModelInfer(request)
        self.assertEqual(np.frombuffer(answer.raw_output_contents[0], np.float32).tolist(), [-4, -3, -2, -1])
        self.assertEqual(np.frombuffer(answer.raw_output_contents[1], np.int64).tolist(), [-10])

    def test_requests_that_are_not_waited_for(self):
        answers = queue.Queue()
        for number in range(40):
            sent = np.full((1, 3), number, np.int64)
            self.client.async_infer(
                "int64",
                [self.tensor("x", sent, "INT64")],
                callback=lambda result, error: answers.put((result, error)),
            )
        got = []
        for _ in range(40):
            result, error = answers.get(timeout=PATIENCE)
            self.assertIsNone(error)
            got.append(result.as_numpy("y")[0, 0])
        self.assertEqual(sorted(got), [3 * number for number in range(40)])

    def stream(self, **settings):
        answers = queue.Queue()
        self.client.start_stream(callback=lambda result, error: answers.put((result, error)), **settings)
        self.addCleanup(self.client.stop_stream)
        return answers

    def send(self, model, number, **settings):
        sent = np.full((1, 3), number, np.int64)
        self.client.async_stream_infer(
            model, [self.tensor("x", sent, "INT64")], request_id=str(number), **settings
        )

    def test_a_stream_answers_in_order_and_survives_mistakes(self):
        for settings in ({}, {"compression_algorithm": "gzip"}):
            answers = self.stream(**settings)
            for number in range(200):
                self.send("nobody" if number % 20 == 7 else "int64", number)
            for number in range(200):
                result, error = answers.get(timeout=PATIENCE)
                if number % 20 == 7:
                    self.assertIn("nobody", str(error))
                    continue
                self.assertIsNone(error)
                self.assertEqual(result.get_response().id, str(number))
                self.assertEqual(result.as_numpy("y").tolist(), [[3 * number] * 3])
                self.assertTrue(result.get_response().parameters["triton_final_response"].bool_param)
            self.client.stop_stream()

    def test_an_error_ends_the_stream_if_the_client_wants_it_so(self):
        answers = self.stream(headers={"triton_grpc_error": "true"})
        self.send("nobody", 1)
        _, error = answers.get(timeout=PATIENCE)
        self.assertEqual(error.status(), "StatusCode.NOT_FOUND")

    def test_each_failure_has_its_status(self):
        one = columns(4)
        for ask, status in [
            (lambda: self.ask("nobody", one, "FP32"), "NOT_FOUND"),
            (lambda: self.ask("int64", one, "FP32"), "INVALID_ARGUMENT"),
            (lambda: self.ask("fp32", one, "FP32", sequence_id=1), "UNIMPLEMENTED"),
            (lambda: self.ask("fp32", one, "FP32", timeout=1), "DEADLINE_EXCEEDED"),
            (lambda: self.client.get_system_shared_memory_status(), "UNIMPLEMENTED"),
            (lambda: self.client.get_trace_settings(), "UNIMPLEMENTED"),
            (lambda: self.client.get_log_settings(), "UNIMPLEMENTED"),
        ]:
            self.assertEqual(self.refused(ask).status(), f"StatusCode.{status}")

    def test_a_message_longer_than_the_limit_is_refused(self):
        zeros = np.zeros((1, 17 << 20), np.float32)
        for compression in (None, "gzip"):
            refusal = self.refused(lambda: self.ask("fp32", zeros, "FP32", compression_algorithm=compression))
            self.assertEqual(refusal.status(), "StatusCode.RESOURCE_EXHAUSTED")

    def test_health_as_kubernetes_asks(self):
        with grpc.insecure_channel(ADDRESS) as channel:
            check = channel.unary_unary("/grpc.health.v1.Health/Check")
            self.assertEqual(check(b""), b"\x08\x01")
            self.assertEqual(check(b"\x0a\x04fp32"), b"\x08\x01")
            with self.assertRaises(grpc.RpcError) as caught:
                check(b"\x0a\x06nobody")
            self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)
            watch = channel.unary_stream("/grpc.health.v1.Health/Watch")(b"")
            self.assertEqual(next(watch), b"\x08\x01")
            watch.cancel()


class Asynchronous(unittest.IsolatedAsyncioTestCase):
    """The clients for asyncio."""

    async def ask_at_once(self, module, client):
        import asyncio

        async def ask(number):
            sent = np.full((1, 3), number, np.int64)
            made = module.InferInput("x", [1, 3], "INT64")
            made.set_data_from_numpy(sent)
            answer = await client.infer("int64", [made])
            self.assertEqual(answer.as_numpy("y").tolist(), [[3 * number] * 3])

        self.assertTrue(await client.is_server_ready())
        await asyncio.gather(*(ask(number) for number in range(100)))
        await client.close()

    async def test_http(self):
        module = tritonclient.http.aio
        await self.ask_at_once(module, module.InferenceServerClient(ADDRESS, conn_timeout=PATIENCE))

    async def test_grpc(self):
        module = tritonclient.grpc.aio
        await self.ask_at_once(module, module.InferenceServerClient(ADDRESS))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
