//! GPUs in containers, from a driver that is only files and device nodes.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use super::driver::{ALL, LIBRARIES, VERSION, install, install_cuda, uuid};
use super::images::Image;
use super::machine::{Machine, machine, run_arguments, until};
use crate::support::{code, shown};

const NODES: &str = "cd /dev; ls -d nvidia* 2>/dev/null | xargs";

fn sh(machine: &Machine, options: &[&str], script: &str) -> Output {
    machine.sh(&[&["--driver-root", "driver"], options].concat(), script)
}

fn says(machine: &Machine, options: &[&str], script: &str) -> String {
    machine.says(&[&["--driver-root", "driver"], options].concat(), script)
}

#[test]
fn the_requested_gpus_are_there_and_no_others() {
    let Some(machine) = machine() else { return };
    let Some(_) = install(&machine, "driver", "driver") else { return };
    let second = uuid(1);
    for (which, expected) in [
        ("all", "nvidia-uvm nvidia-uvm-tools nvidia0 nvidia1 nvidiactl"),
        ("1", "nvidia-uvm nvidia-uvm-tools nvidia0 nvidiactl"),
        ("device=1", "nvidia-uvm nvidia-uvm-tools nvidia1 nvidiactl"),
        (&second, "nvidia-uvm nvidia-uvm-tools nvidia1 nvidiactl"),
        ("2", "nvidia-uvm nvidia-uvm-tools nvidia0 nvidia1 nvidiactl"),
    ] {
        assert_eq!(says(&machine, &["--gpus", which], NODES).trim(), expected, "{which}");
    }
    let numbers =
        says(&machine, &["--gpus", "all"], "cd /dev; stat -c '%n %t %T' nvidiactl nvidia1 nvidia-uvm-tools");
    assert_eq!(
        numbers, "nvidiactl c3 ff\nnvidia1 c3 1\nnvidia-uvm-tools 1fe 1\n",
        "with the numbers they have here"
    );
    assert_eq!(says(&machine, &[], NODES).trim(), "", "without asking there is none");
}

#[test]
fn gpus_can_be_requested_by_their_cdi_names_and_as_from_the_nvidia_runtime() {
    let Some(machine) = machine() else { return };
    let Some(_) = install(&machine, "driver", "driver") else { return };
    let both = "nvidia-uvm nvidia-uvm-tools nvidia0 nvidia1 nvidiactl";
    let second = "nvidia-uvm nvidia-uvm-tools nvidia1 nvidiactl";
    let by_uuid = format!("nvidia.com/gpu={}", uuid(1));
    for (options, expected) in [
        (&["--device", "nvidia.com/gpu=all"][..], both),
        (&["--device", "nvidia.com/gpu=0", "--device", "nvidia.com/gpu=1"], both),
        (&["--device", "nvidia.com/gpu=1"], second),
        (&["--device", &by_uuid], second),
        (&["--runtime", "nvidia"], both),
        (&["--runtime", "nvidia", "-e", "NVIDIA_VISIBLE_DEVICES=1"], second),
        (&["--runtime", "nvidia", "-e", "NVIDIA_VISIBLE_DEVICES=void"], ""),
        (&["--runtime", "nvidia", "--gpus", "device=1"], second),
        (&["--runtime", "runc"], ""),
    ] {
        assert_eq!(says(&machine, options, NODES).trim(), expected, "{options:?}");
    }
    let twice = ["--driver-root", "driver", "--gpus", "all", "--device", "nvidia.com/gpu=all"];
    let message = machine.bad(2, &run_arguments(&twice, &["true"]));
    assert!(message.contains("--gpus and --device nvidia.com/gpu"), "{message}");
}

/// Opens a node and prints the result: a node without a driver behind it is one that may be opened.
fn opening(node: &str) -> String {
    format!("dd if={node} of=/dev/null count=0 2>&1")
}

#[test]
fn the_kernel_refuses_gpus_that_were_not_requested() {
    let Some(machine) = machine() else { return };
    let Some(_) = install(&machine, "driver", "driver") else { return };
    let made = format!("mknod /tmp/one c 195 1; {}", opening("/tmp/one"));
    let refused = "Operation not permitted";
    let output = sh(&machine, &["--gpus", "device=0"], &opening("/dev/nvidia0"));
    assert!(!shown(&output).contains(refused), "its own it may open: {}", shown(&output));
    for options in [&["--gpus", "device=0"][..], &["--gpus", "none"], &[]] {
        let output = sh(&machine, options, &made);
        assert!(shown(&output).contains(refused), "{options:?}: {}", shown(&output));
    }
    let output = sh(&machine, &["--gpus", "all"], &made);
    assert!(!shown(&output).contains(refused), "{}", shown(&output));
}

#[test]
fn libraries_and_programs_follow_the_capabilities() {
    let Some(machine) = machine() else { return };
    let Some(_) = install(&machine, "driver", "driver") else { return };
    for (capabilities, expected) in [
        (None, &["compute", "utility"][..]),
        (Some("utility"), &["utility"]),
        (Some("compute"), &["compute"]),
        (Some("compute,video"), &["compute", "video"]),
        (Some("all"), &["compute", "utility", "video", "ngx"]),
    ] {
        let mut options = vec!["--gpus", "all"];
        options.extend(capabilities.iter().flat_map(|list| ["--driver-capabilities", list]));
        let found = says(&machine, &options, "find / -xdev -name 'lib*.so*'; which nvidia-smi || true");
        for (stem, soname, capability) in ALL {
            let there = [format!("/{stem}.so.{VERSION}"), format!("/{stem}.so.{soname}")];
            let all = there.iter().all(|name| found.contains(name));
            assert_eq!(all, expected.contains(&capability), "{capabilities:?}: {stem}\n{found}");
        }
        assert_eq!(found.contains("nvidia-smi"), expected.contains(&"utility"), "{capabilities:?}");
    }
    let message = machine.bad(
        2,
        &run_arguments(
            &["--driver-root", "driver", "--gpus", "all", "--driver-capabilities", "compte"],
            &["true"],
        ),
    );
    assert!(message.contains("compte") && message.contains("did you mean `compute`?"), "{message}");
}

#[test]
fn a_loader_finds_the_libraries() {
    let Some(machine) = machine() else { return };
    let Some(_) = install(&machine, "driver", "driver") else { return };
    let script = "cat $(find / -xdev -name libcuda.so.1); find / -xdev -name libcuda.so; strings /etc/ld.so.cache | grep -c libcuda.so.1";
    let stdout = says(&machine, &["--gpus", "all"], script);
    assert!(stdout.contains("libcuda"), "{stdout}");
    assert!(stdout.contains("/libcuda.so\n"), "{stdout}");
    assert!(!stdout.trim_end().ends_with('0'), "it is in the loader's cache: {stdout}");
    let stdout = says(
        &machine,
        &["--gpus", "all"],
        "find / -xdev -name 'libcuda.so*' | xargs ls -l; env | grep NVIDIA",
    );
    assert!(
        stdout.contains("NVIDIA_VISIBLE_DEVICES=void"),
        "no toolkit maps them in a second time: {stdout}"
    );
    let output = sh(&machine, &["--gpus", "all"], "echo x > $(find / -xdev -name libcuda.so.580*)");
    assert!(shown(&output).contains("Read-only file system"), "{}", shown(&output));
    for path in ["etc/ld.so.cache", "usr"] {
        assert!(
            !machine.root().join(path).exists(),
            "the directory it was made of is not written to: {path}"
        );
    }
}

#[test]
fn nvidia_smi_runs_where_it_was_put() {
    let Some(machine) = machine() else { return };
    let Some(_) = install(&machine, "driver", "driver") else { return };
    assert!(says(&machine, &["--gpus", "all"], "nvidia-smi").starts_with("NVIDIA-SMI"));
}

#[test]
fn files_and_devices_may_be_in_two_places() {
    let Some(machine) = machine() else { return };
    let Some(_) = install(&machine, "files", "devices") else { return };
    let options = ["--gpus", "all", "--driver-root", "files", "--device-root", "devices"];
    let stdout = machine.says(&options, &format!("{NODES}; find / -xdev -name libcuda.so.1"));
    assert!(stdout.contains("nvidia0 nvidia1") && stdout.contains("libcuda.so.1"), "{stdout}");
}

#[test]
fn what_the_module_lets_a_container_change_is_nothing() {
    let Some(machine) = machine() else { return };
    let Some(_) = install(&machine, "driver", "driver") else { return };
    let stdout =
        says(&machine, &["--gpus", "all"], "cat /proc/driver/nvidia/params 2>/dev/null || echo no module");
    if Path::new("/proc/driver/nvidia/params").exists() {
        assert!(stdout.contains("ModifyDeviceFiles: 0"), "{stdout}");
    } else {
        assert_eq!(stdout, "no module\n");
    }
}

#[test]
fn none_is_the_drivers_files_without_a_gpu() {
    let Some(machine) = machine() else { return };
    let Some(_) = install(&machine, "driver", "driver") else { return };
    let nodes = says(&machine, &["--gpus", "none"], NODES);
    assert!(!nodes.contains("nvidia0") && !nodes.contains("nvidia1"), "{nodes}");
}

#[test]
fn an_image_alone_gets_no_gpu() {
    let Some(machine) = machine() else { return };
    let Some(_) = install(&machine, "driver", "driver") else { return };
    Image::of(&machine).variable("NVIDIA_VISIBLE_DEVICES", "all").write("app");
    let run = ["run", "--rm", "--network", "none", "--driver-root", "driver"];
    let stdout = machine.good(&[run.as_slice(), &["oci:app", "sh", "-c", NODES]].concat());
    assert_eq!(stdout.trim(), "");
    let stdout =
        machine.good(&[run.as_slice(), &["--gpus", "device=1", "oci:app", "sh", "-c", NODES]].concat());
    assert!(stdout.contains("nvidia1") && !stdout.contains("nvidia0"), "the command line decides: {stdout}");
}

#[test]
fn an_images_capabilities_are_heard() {
    let Some(machine) = machine() else { return };
    let Some(_) = install(&machine, "driver", "driver") else { return };
    Image::of(&machine).variable("NVIDIA_DRIVER_CAPABILITIES", "utility").write("app");
    let run = ["run", "--rm", "--network", "none", "--driver-root", "driver", "--gpus", "all"];
    let script = "find / -xdev -name 'lib*.so.1'";
    let stdout = machine.good(&[run.as_slice(), &["oci:app", "sh", "-c", script]].concat());
    assert!(stdout.contains("libnvidia-ml") && !stdout.contains("libcuda"), "{stdout}");
    let more = ["--driver-capabilities", "compute", "oci:app", "sh", "-c", script];
    let stdout = machine.good(&[run.as_slice(), &more].concat());
    assert!(
        stdout.contains("libcuda") && !stdout.contains("libnvidia-ml"),
        "the command line decides: {stdout}"
    );
}

#[test]
fn what_an_image_requires_is_checked_before_it_starts() {
    let Some(machine) = machine() else { return };
    let Some(_) = install(&machine, "driver", "driver") else { return };
    Image::of(&machine).variable("NVIDIA_REQUIRE_CUDA", "cuda>=99.0").write("future");
    Image::of(&machine).variable("NVIDIA_REQUIRE_CUDA", "cuda>=12.0").write("present");
    let run = ["run", "--rm", "--network", "none", "--driver-root", "driver"];
    let all = |more: &[&str]| machine.call(&[run.as_slice(), more].concat());
    let output = all(&["--gpus", "all", "oci:future", "echo", "started"]);
    assert_eq!(code(&output), 3, "{}", shown(&output));
    let text = shown(&output);
    assert!(text.contains("error: ") && text.contains("cuda>=99.0") && !text.contains("started"), "{text}");
    assert!(text.contains("hint: ") && text.contains("NVIDIA_DISABLE_REQUIRE"), "{text}");
    for more in [
        &["--gpus", "all", "oci:present", "echo", "started"][..],
        &["--gpus", "all", "-e", "NVIDIA_DISABLE_REQUIRE=1", "oci:future", "echo", "started"],
        &["oci:future", "echo", "started"],
    ] {
        let output = all(more);
        assert_eq!(output.stdout, b"started\n", "{more:?}: {}", shown(&output));
    }
}

#[test]
fn missing_gpus_are_reported_with_those_that_exist() {
    let Some(machine) = machine() else { return };
    let Some(_) = install(&machine, "driver", "driver") else { return };
    let first = uuid(0);
    for (which, expected, hint) in [
        ("device=7", "no GPU `7` here", first.as_str()),
        ("3", "3 GPUs requested, 2 available", "at most 2"),
        ("GPU-nowhere", "GPU-nowhere", first.as_str()),
        ("device=0:3", "0:3", "hint"),
    ] {
        for detach in [&["--rm"][..], &["--rm", "-d"]] {
            let options = [&["--driver-root", "driver", "--gpus", which], detach].concat();
            let output = machine.call(&run_arguments(&options, &["true"]));
            assert!(matches!(code(&output), 2 | 3), "{which}: {}", shown(&output));
            assert!(
                shown(&output).contains(expected) && shown(&output).contains(hint),
                "{which}: {}",
                shown(&output)
            );
        }
    }
    std::fs::create_dir(machine.path().join("empty")).unwrap();
    let options = ["--rm", "--gpus", "all", "--driver-root", "empty"];
    let output = machine.call(&run_arguments(&options, &["true"]));
    assert_eq!(code(&output), 3, "{}", shown(&output));
    assert!(shown(&output).contains("no NVIDIA driver found below"), "{}", shown(&output));
}

#[test]
fn a_driver_that_changes_while_a_container_is_stopped_is_found_as_it_is_then() {
    let Some(machine) = machine() else { return };
    let Some((driver, _)) = install(&machine, "driver", "driver") else { return };
    let script = "find / -xdev -name 'libcuda.so.*.*' | xargs basename; test -e /once && exit 0; touch /once; sleep 1; exit 1";
    let options = ["--driver-root", "driver", "--gpus", "all", "--restart", "on-failure:1"];
    machine.start("updated", &options, script);
    machine.until_logged("updated", VERSION);
    for (stem, soname, _) in ALL {
        let directory = driver.join(LIBRARIES);
        std::fs::rename(
            directory.join(format!("{stem}.so.{VERSION}")),
            directory.join(format!("{stem}.so.590.10")),
        )
        .unwrap();
        std::fs::remove_file(directory.join(format!("{stem}.so.{soname}"))).unwrap();
        std::os::unix::fs::symlink(
            format!("{stem}.so.590.10"),
            directory.join(format!("{stem}.so.{soname}")),
        )
        .unwrap();
    }
    let version = driver.join("proc/driver/nvidia/version");
    let text = std::fs::read_to_string(&version).unwrap().replace(VERSION, "590.10");
    std::fs::write(version, text).unwrap();
    assert_eq!(machine.good(&["wait", "updated"]), "0\n", "{}", machine.logs("updated"));
    assert!(machine.logs("updated").contains("libcuda.so.590.10"), "{}", machine.logs("updated"));
}

#[test]
fn a_gpu_that_computes_is_seen_before_the_program_starts() {
    let Some(machine) = machine() else { return };
    let Some((driver, _)) = install(&machine, "driver", "driver") else { return };
    let Some(()) = install_cuda(&driver, &["DEVICES=2"]) else { return };
    let options = ["--driver-root", "driver", "--gpus", "all", "--verify-gpu"];
    let output = machine.sh(&options, "echo started");
    let text = shown(&output);
    assert_eq!((code(&output), output.stdout.as_slice()), (0, &b"started\n"[..]), "{text}");
    assert!(String::from_utf8_lossy(&output.stderr).lines().count() >= 2, "what was seen is shown: {text}");
    let message = machine.bad(2, &run_arguments(&["--verify-gpu"], &["true"]));
    assert!(message.contains("--verify-gpu without --gpus"), "{message}");
}

#[test]
fn a_gpu_that_does_not_compute_keeps_the_program_from_starting() {
    let Some(machine) = machine() else { return };
    let Some((driver, _)) = install(&machine, "driver", "driver") else { return };
    let broken =
        [&["DEVICES=2", "WRONG_AT=77"][..], &["FAIL=\"cuInit\"", "CODE=802"], &["DEVICES=0"], &["IDLE"]];
    for definitions in broken {
        let Some(()) = install_cuda(&driver, definitions) else { return };
        for detach in [&["--rm"][..], &["--rm", "-d"]] {
            let options = [&["--driver-root", "driver", "--gpus", "all", "--verify-gpu"], detach].concat();
            let output = machine.call(&run_arguments(&options, &["echo", "started"]));
            let text = shown(&output);
            assert_eq!(code(&output), 3, "{definitions:?}: {text}");
            assert!(
                text.contains("the GPU does not work in the container") && !text.contains("started"),
                "{text}"
            );
        }
    }
}

#[test]
fn a_proof_is_made_by_the_run_that_verifies_and_by_nothing_else() {
    let Some(machine) = machine() else { return };
    let Some((driver, _)) = install(&machine, "driver", "driver") else { return };
    let Some(()) = install_cuda(&driver, &["DEVICES=2"]) else { return };
    let Some(openssl) = cudock_testkit::require_program("openssl") else { return };
    let openssl = |arguments: &[&str]| {
        let output = Command::new(&openssl).args(arguments).current_dir(machine.path()).output().unwrap();
        assert!(output.status.success(), "{}", shown(&output));
    };
    openssl(&["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", "key"]);
    openssl(&["pkey", "-in", "key", "-pubout", "-out", "public"]);
    Image::of(&machine).write("app");
    Image::of(&machine).layer(&[("more", "more\n")]).write("other");
    let run = |options: &[&str], image: &str| {
        let first = ["run", "--rm", "--network", "none", "--driver-root", "driver"];
        machine.call(&[&first[..], options, &[image, "echo", "started"]].concat())
    };
    let verified = ["--gpus", "all", "--verify-gpu", "--sign-proof", "key"];
    // A signature alone proves nothing.
    for image in ["oci:app", "oci:other"] {
        machine.good(&["sign", image, "--key", "key"]);
        let output = run(&["--require-proof", "public"], image);
        assert_eq!(code(&output), 2, "{}", shown(&output));
        assert!(shown(&output).contains("has no proof that this key signed"), "{}", shown(&output));
    }
    let output = run(&verified, "oci:app");
    let text = shown(&output);
    assert_eq!((code(&output), output.stdout.as_slice()), (0, &b"started\n"[..]), "{text}");
    assert!(text.contains("proof attached to sha256:"), "{text}");
    let report: Value =
        serde_json::from_str(&machine.good(&["verify", "oci:app", "--key", "public", "--format", "json"]))
            .unwrap();
    let statements = report["statements"].as_array().unwrap();
    let proof =
        &statements.iter().find(|one| one["predicate_type"] == "urn:cudock:proof:1").unwrap()["predicate"];
    for (number, name) in ["Fake GPU 0", "Fake GPU 1"].into_iter().enumerate() {
        assert_eq!(proof["gpus"][number]["name"], name);
    }
    assert!(proof["driver"]["library"].as_str().unwrap().contains(VERSION), "{proof}");
    assert!(proof["output"].as_str().unwrap().contains("GPU 1: Fake GPU 1"), "{proof}");
    let output = run(&["--require-proof", "public"], "oci:app");
    assert_eq!((code(&output), output.stdout.as_slice()), (0, &b"started\n"[..]), "{}", shown(&output));
    until("nothing is left of the containers", || machine.list().is_empty());
    // A GPU that fails gives no proof.
    let Some(()) = install_cuda(&driver, &["DEVICES=2", "WRONG_AT=77"]) else { return };
    let output = run(&verified, "oci:other");
    assert_eq!(code(&output), 3, "{}", shown(&output));
    assert!(shown(&output).contains("the GPU does not work in the container"), "{}", shown(&output));
    let output = run(&["--require-proof", "public"], "oci:other");
    assert_eq!(code(&output), 2, "{}", shown(&output));
    let output = run(&["--sign-proof", "key"], "oci:app");
    assert!(shown(&output).contains("--verify-gpu"), "{}", shown(&output));
}
