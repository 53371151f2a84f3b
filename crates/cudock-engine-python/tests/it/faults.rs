//! Whatever a model does, the server gets an answer.

use std::time::Duration;

use cudock_engine::{Engine, EngineError};
use cudock_testkit::process::wait_until_gone;

use crate::support::{Models, floats, run};

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
fn a_gpu_without_memory_is_told_apart() {
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
fn a_worker_that_hangs_is_killed_with_the_processes_it_started() {
    let Some(models) = Models::new() else { return };
    let lines = "child = subprocess.Popen(['sleep', '1000'])
print(f'child {child.pid}.')
while True: pass";
    let mut worker = models.start(&model(lines));
    let input = floats(&[1, 2], &[1.0, 1.0]);
    let result = std::thread::scope(|scope| {
        let lane = &mut *worker.lanes[0];
        scope.spawn(move || run(lane, &[input], Duration::from_secs(2))).join().unwrap()
    });
    assert!(matches!(result, Err(EngineError::TimedOut(_))), "{result:?}");
    let lines = worker.wait_for_line("child ");
    let child = lines.iter().find_map(|line| line.strip_prefix("stdout: child ")?.strip_suffix('.')).unwrap();
    wait_until_gone(worker.engine.process().unwrap());
    wait_until_gone(child.parse::<u32>().unwrap());
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
    let printed = crate::support::Printed::default();
    let started = cudock_engine_python::start(&settings, Duration::from_secs(3), Some(&printed.sink()));
    let Err(EngineError::Load { reason, .. }) = started else { panic!("it is ready") };
    assert!(reason.contains("timed out"), "{reason}");
    let lines = printed.wait_for("pid ");
    let process = lines.iter().find_map(|line| line.strip_prefix("stdout: pid ")?.strip_suffix('.')).unwrap();
    wait_until_gone(process.parse::<u32>().unwrap());
}
