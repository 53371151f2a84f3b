//! Whatever a model does, the server gets an answer.

use std::time::Duration;

use cudock_engine::{Engine, EngineError};
use cudock_testkit::process::{is_running, wait_until_gone};
use cudock_testkit::random::{Random, cases, seed};

use crate::support::{Models, Printed, floats, run, start_within};

/// A model whose `predict` runs these lines if its first input is one, and else returns its input.
fn model(lines: &str) -> String {
    let body: String = lines.lines().map(|line| format!("            {line}\n")).collect();
    format!(
        "import os, sys, time, signal, subprocess
class Model:
    def predict(self, x: floats(-1, 2)) -> floats(-1, 2):
        if x[0, 0] == 1:
{body}        return x
"
    )
}

#[test]
fn an_exception_fails_the_batch_with_its_type_and_message_and_the_log_has_the_traceback() {
    let Some(models) = Models::new() else { return };
    for (line, message) in [
        ("raise ValueError('bad pixel')", "ValueError: bad pixel"),
        ("raise MemoryError()", "MemoryError"),
        ("np.zeros(1 << 55)", "MemoryError: Unable to allocate"),
        ("sys.exit(3)", "SystemExit: 3"),
        ("import no_such_module", "-m pip install no_such_module"),
    ] {
        let mut worker = models.start(&model(line));
        let text = worker.failure();
        assert!(text.contains(message) && !text.contains("Traceback"), "{text}");
        let log = worker.wait_for_line(line);
        assert!(log.iter().any(|one| one.starts_with("stderr: Traceback")), "{log:?}");
        assert_eq!(worker.run_floats(&[2.0, 3.0]).unwrap(), [2.0, 3.0], "the next batch runs");
    }
}

#[test]
fn a_gpu_out_of_memory_is_distinguished() {
    let Some(models) = Models::new() else { return };
    let mut worker =
        models.start(&model("raise type('OutOfMemoryError', (RuntimeError,), {})('CUDA out of memory')"));
    let error = worker.run_floats(&[1.0, 1.0]).unwrap_err();
    assert!(
        matches!(&error, EngineError::DeviceMemory(text) if text.contains("CUDA out of memory")),
        "{error:?}"
    );
    assert_eq!(worker.run_floats(&[2.0, 3.0]).unwrap(), [2.0, 3.0]);
}

#[test]
fn a_wrong_type_shape_or_number_of_rows_is_named_and_the_worker_goes_on() {
    let Some(models) = Models::new() else { return };
    for (line, message) in [
        ("return x.astype('float64')", "output `output` is float64[1, 2], expected float32[1, 2]"),
        ("return np.zeros((1, 3), 'float32')", "output `output` is float32[1, 3], expected float32[1, 2]"),
        ("return np.zeros((2, 2), 'float32')", "output `output` is float32[2, 2], expected float32[1, 2]"),
        ("return x[0]", "output `output` is float32[2], expected float32[1, 2]"),
        ("return ['a', 'b']", "output `output` is not float32[-1, 2]: could not convert string to float"),
        ("return x, x", "the model returned 2 outputs, expected 1: output"),
        ("return {'y': x}", "the model returned no output `output`, but `y`"),
        ("return None", "output `output` is"),
    ] {
        let mut worker = models.start(&model(line));
        let text = worker.failure();
        assert!(text.starts_with(message), "{line}: {text}");
        assert_eq!(worker.run_floats(&[2.0, 3.0]).unwrap(), [2.0, 3.0], "{line}");
    }
}

#[test]
fn a_model_that_prints_a_gigabyte_is_neither_slowed_nor_stored() {
    let Some(models) = Models::new() else { return };
    // By Python, by native code, and a line without an end.
    let lines = "for _ in range(600): print('out' * 333333)
for _ in range(200): os.write(2, b'err\\n' * 250000)
for _ in range(200): os.write(1, b'x' * 1000000)
os.write(2, b'end\\n'); time.sleep(1.1); os.write(2, b'end\\n')";
    let mut worker = models.start(&model(lines));
    assert_eq!(worker.run_floats(&[1.0, 1.0]).unwrap(), [1.0, 1.0]);
    let lines = worker.wait_for_line("lines dropped");
    assert!(lines.iter().any(|line| line.starts_with("stdout: outout")), "{}", lines.len());
    assert!(lines.iter().any(|line| line == "stderr: err"));
    let kept: usize = lines.iter().map(String::len).sum();
    assert!(kept < 100 << 20, "{kept} bytes of a gigabyte were kept");
}

#[test]
fn a_worker_that_dies_is_reported_with_the_reason() {
    let Some(models) = Models::new() else { return };
    for (line, reason) in [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "the engine died (signal 11, SIGSEGV)"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "the engine died (signal 9, SIGKILL)"),
        ("os._exit(7)", "the engine died (exit code 7)"),
    ] {
        let mut worker = models.start(&model(line));
        let error = worker.run_floats(&[1.0, 1.0]).unwrap_err();
        assert!(error.is_fatal());
        assert_eq!(error.to_string(), reason);
    }
}

#[test]
fn processes_that_a_model_has_started_end_with_its_worker_however_that_ends() {
    let Some(models) = Models::new() else { return };
    for line in
        ["while True: pass", "os.kill(os.getpid(), signal.SIGSEGV)", "os.kill(os.getpid(), 9)", "os._exit(0)"]
    {
        // A child, one in a session of its own, and a daemon.
        let lines = format!(
            "children = [subprocess.Popen(['sleep', '1000']), subprocess.Popen(['setsid', 'sleep', '1000'])]
subprocess.run('setsid sh -c \"echo child \\$\\$; exec sleep 1000\" &', shell=True)
for child in children: os.write(1, b'child %d\\n' % child.pid)
time.sleep(0.1)
{line}"
        );
        let mut worker = models.start(&model(&lines));
        let input = floats(&[1, 2], &[1.0, 1.0]);
        let error = run(&mut *worker.lanes[0], &[input], Duration::from_secs(2)).unwrap_err();
        assert!(error.is_fatal(), "{line}: {error}");
        let children = worker.children(3);
        wait_until_gone(worker.engine.process().unwrap());
        children.into_iter().for_each(wait_until_gone);
    }
}

/// A model that returns its second input, and whose first one says what goes wrong: 1 forks, 2 forks and fails in the child,
/// 3 replies twice, 4 forks and computes something else in the child, which is slower.
const FAULTY: &str = "import os, time
import cudock_lane
class Socket:
    def __init__(self, socket):
        self.socket, self.recv_into, self.replies = socket, socket.recv_into, 1
    def send(self, reply):
        for _ in range(self.replies): self.socket.send(reply)
        self.replies = 1
create = cudock_lane.Lane.__init__
def create_faulty(lane, *values):
    create(lane, *values)
    lane.socket = Faulty.socket = Socket(lane.socket)
cudock_lane.Lane.__init__ = create_faulty
class Faulty:
    def predict(self, x: floats(-1, 2)) -> floats(-1, 1):
        fault = x[0, 0]
        if fault == 3: Faulty.socket.replies = 2
        if fault in (1, 2, 4) and os.fork() == 0:
            if fault == 2: raise ValueError('in the child')
            if fault == 4: time.sleep(0.02)
            return x[:, 1:] - 1000
        return x[:, 1:]
";

#[test]
fn a_batch_gets_its_own_outputs_or_none_whatever_a_model_forks_or_sends() {
    let Some(models) = Models::new() else { return };
    let mut random = Random::new(seed());
    let mut worker = models.start(FAULTY);
    let mut restarts = 0;
    for batch in 0..cases(60) {
        let fault = f32::from(u8::try_from(random.below(5)).unwrap());
        let value = f32::from(u16::try_from(batch).unwrap());
        match worker.run_floats(&[fault, value]) {
            Ok(outputs) => assert_eq!(outputs, [value], "batch {batch}"),
            Err(error) => {
                assert!(
                    matches!(&error, EngineError::Died(text) if text.contains("it replied to batch")),
                    "{error}"
                );
                worker = models.start(FAULTY);
                restarts += 1;
            }
        }
    }
    assert!(restarts > 0, "no reply came twice");
}

#[test]
fn the_child_of_a_model_that_forks_while_it_is_loaded_is_not_a_worker() {
    let Some(models) = Models::new() else { return };
    let mut worker = models.start(&format!("import os\nos.fork()\n{}", model("pass")));
    let process = worker.engine.process().unwrap();
    for value in 2..20_u8 {
        let values = [f32::from(value), 0.0];
        assert_eq!(worker.run_floats(&values).unwrap(), values);
    }
    assert!(is_running(process));
}

#[test]
fn a_worker_ends_with_its_server_and_ignores_signals_for_it() {
    let Some(models) = Models::new() else { return };
    let mut worker = models.start(&model("x[:] = len(sys.stdin.read())"));
    let process = worker.engine.process().unwrap();
    for signal in ["-TERM", "-INT"] {
        let kill = std::process::Command::new("kill").arg(signal).arg(process.to_string()).status();
        assert!(kill.unwrap().success());
        assert_eq!(worker.run_floats(&[1.0, 1.0]).unwrap(), [0.0, 0.0], "standard input is empty");
    }
    drop(worker);
    wait_until_gone(process);
}

#[test]
fn a_worker_ends_while_it_is_still_loading() {
    let Some(models) = Models::new() else { return };
    let settings = models.settings("model.py", |_| ());
    std::fs::write(
        models.path("model.py"),
        "import os, time\nprint(f'pid {os.getpid()}.')\ntime.sleep(1000)\n",
    )
    .unwrap();
    let printed = Printed::default();
    let started = start_within(&settings, Duration::from_secs(3), &printed);
    let Err(EngineError::Load { reason, .. }) = started else { panic!("it is ready") };
    assert!(reason.contains("timed out"), "{reason}");
    let lines = printed.wait_for("pid ");
    let process = lines.iter().find_map(|line| line.strip_prefix("stdout: pid ")?.strip_suffix('.')).unwrap();
    wait_until_gone(process.parse::<u32>().unwrap());
}
