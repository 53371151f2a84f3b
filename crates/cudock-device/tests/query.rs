//! The query against a driver's library of our own, which keeps device memory in host memory and reads PTX.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]

mod support;

use std::sync::mpsc;
use std::time::Duration;

use cudock_device::{Action, DeviceError, Outcome, Report, Step, query_library};
use support::Fake;

/// One number for each thing that the query computes.
const NUMBERS: u32 = 1 << 20;

/// What fails a device's turn, in the order of the calls, as the library spells them.
const CALLS_ON_A_DEVICE: [(&str, Action); 19] = [
    ("cuDeviceGet", Action::OpenDevice),
    ("cuDeviceGetName", Action::Name),
    ("cuDeviceGetUuid_v2", Action::Uuid),
    ("cuDeviceGetAttribute", Action::Capability),
    ("cuDeviceTotalMem_v2", Action::TotalMemory),
    ("cuDeviceGetPCIBusId", Action::BusId),
    ("cuDevicePrimaryCtxRetain", Action::RetainContext),
    ("cuCtxSetCurrent", Action::EnterContext),
    ("cuMemGetInfo_v2", Action::FreeMemory),
    ("cuMemAlloc_v2", Action::Allocate),
    ("cuMemcpyHtoD_v2", Action::CopyIn),
    ("cuCtxSynchronize", Action::Synchronise),
    ("cuModuleLoadData", Action::LoadKernel),
    ("cuModuleGetFunction", Action::FindKernel),
    ("cuLaunchKernel", Action::Launch),
    ("cuMemcpyDtoH_v2", Action::CopyOut),
    ("cuModuleUnload", Action::UnloadKernel),
    ("cuMemFree_v2", Action::FreeAllocated),
    ("cuDevicePrimaryCtxRelease_v2", Action::ReleaseContext),
];

fn report(fake: &Fake) -> Report {
    query_library(fake.path(), &mut |_| {}).expect("the fake driver answers")
}

fn error(fake: &Fake) -> DeviceError {
    query_library(fake.path(), &mut |_| {}).expect_err("the fake driver fails")
}

#[test]
fn two_devices_are_described_and_compute() {
    let Some(fake) = Fake::new(&[]) else { return };
    let report = report(&fake);
    assert_eq!(report.driver_cuda.to_string(), "13.0");
    assert_eq!(report.library, fake.path().to_string_lossy());
    assert!(report.all_compute(), "{}", report.text());
    let [first, second] = &report.devices[..] else { panic!("two devices: {report:?}") };
    assert_eq!((first.ordinal, second.ordinal), (0, 1));
    assert_eq!(second.name.as_deref(), Some("Fake GPU 1"));
    assert_eq!(second.uuid.as_deref(), Some("GPU-10111213-1415-1617-1819-1a1b1c1d1e1f"));
    assert_eq!(second.capability.map(|capability| capability.to_string()).as_deref(), Some("9.1"));
    assert_eq!((second.memory_total, second.memory_free), (Some(16 << 30), Some(15 << 30)));
    assert_eq!(second.bus.as_deref(), Some("0000:1C:00.0"));
    assert!(!second.mig);
    for device in [first, second] {
        for figure in [device.launch_us, device.to_device_gb_s, device.from_device_gb_s] {
            assert!(figure.is_some_and(|figure| figure > 0.0 && figure.is_finite()), "{device:?}");
        }
    }
}

#[test]
fn an_error_before_any_device_is_known_names_the_step_and_the_number() {
    for (call, action) in [
        ("cuInit", Action::Initialise),
        ("cuDriverGetVersion", Action::DriverVersion),
        ("cuDeviceGetCount", Action::CountDevices),
    ] {
        let Some(fake) = Fake::new(&[&format!("FAIL=\"{call}\""), "CODE=803"]) else { return };
        let DeviceError::Driver { failure, library } = error(&fake) else {
            panic!("{call}: {:?}", error(&fake))
        };
        assert_eq!(library, fake.path().to_string_lossy());
        assert_eq!(failure.step, Step { device: None, action });
        assert_eq!((failure.code, failure.name.as_str()), (803, "cudaErrorSystemDriverMismatch"));
        assert!(failure.way_out.iter().any(|way| way.contains("compat")), "{failure:?}");
    }
}

#[test]
fn an_error_at_any_step_of_a_device_names_the_step_and_all_that_was_taken_is_given_back() {
    for (call, action) in CALLS_ON_A_DEVICE {
        let Some(fake) = Fake::logging(&["DEVICES=1", &format!("FAIL=\"{call}\""), "CODE=719"]) else {
            return;
        };
        let device = &report(&fake).devices[0];
        let Outcome::Failed(failure) = &device.computes else { panic!("{call}: {:?}", device.computes) };
        assert_eq!(failure.step, Step { device: Some(0), action }, "{call}");
        assert_eq!((failure.code, failure.name.as_str()), (719, "CUDA_ERROR_LAUNCH_FAILED"), "{call}");
        assert_eq!(device.name.is_some(), !["cuDeviceGet", "cuDeviceGetName"].contains(&call), "{call}");
        for (taken, given) in [
            ("cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2"),
            ("cuMemAlloc_v2", "cuMemFree_v2"),
            ("cuModuleLoadData", "cuModuleUnload"),
        ] {
            assert_eq!(fake.succeeded(taken), fake.called(given), "{taken} and {given} where {call} fails");
        }
    }
}

#[test]
fn a_device_that_fails_leaves_the_other_alone() {
    for call in ["cuDeviceGet", "cuLaunchKernel"] {
        let Some(fake) = Fake::new(&[&format!("FAIL=\"{call}\""), "FAIL_DEVICE=0"]) else { return };
        let report = report(&fake);
        let [broken, sound] = &report.devices[..] else { panic!("{call}: two devices") };
        assert!(matches!(broken.computes, Outcome::Failed(_)), "{call}");
        assert_eq!(sound.computes, Outcome::Yes, "{call}");
        assert!(!report.all_compute());
    }
}

#[test]
fn everything_is_called_where_nothing_fails() {
    let Some(fake) = Fake::logging(&["DEVICES=1"]) else { return };
    assert!(report(&fake).all_compute());
    for (call, _) in CALLS_ON_A_DEVICE {
        assert!(fake.succeeded(call) > 0, "{call} is in the table of calls and never called");
    }
}

#[test]
fn one_wrong_number_among_all_is_found() {
    for at in [0, 4711, NUMBERS - 1] {
        let Some(fake) = Fake::new(&["DEVICES=1", &format!("WRONG_AT={at}")]) else { return };
        let report = report(&fake);
        let Outcome::Wrong { element, expected, found, wrong, of } = report.devices[0].computes else {
            panic!("{report:?}")
        };
        // Launched three times, so the bit is turned thrice; the kernel writes the element anew each time.
        assert_eq!((element, expected ^ found, wrong, of), (at, 1 << 30, 1, NUMBERS));
        assert!(!report.way_out().is_empty());
    }
}

#[test]
fn a_kernel_that_never_ran_is_noticed() {
    let Some(fake) = Fake::new(&["DEVICES=1", "IDLE"]) else { return };
    let outcome = &report(&fake).devices[0].computes;
    assert!(matches!(outcome, Outcome::Wrong { element: 0, wrong: NUMBERS, .. }), "{outcome:?}");
}

#[test]
fn an_old_driver_without_newer_functions_is_enough() {
    let Some(fake) = Fake::new(&["OLD", "VERSION=9020"]) else { return };
    let report = report(&fake);
    assert!(report.all_compute(), "{}", report.text());
    assert_eq!(report.driver_cuda.to_string(), "9.2");
    assert_eq!(report.devices[0].uuid.as_deref(), Some("GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"));
}

#[test]
fn an_old_driver_that_names_no_errors_has_the_tables_names() {
    let Some(fake) = Fake::new(&["OLD", "FAIL=\"cuInit\"", "CODE=100"]) else { return };
    let error = error(&fake);
    let path = fake.path().display();
    assert_eq!(
        error.to_string(),
        format!(
            "starting the driver (cuInit) failed: no CUDA-capable device is detected (cudaErrorNoDevice, error 100), \
             with {path}"
        )
    );
}

#[test]
fn a_slice_has_its_own_uuid() {
    let Some(fake) = Fake::new(&["MIG", "DEVICES=1"]) else { return };
    let device = &report(&fake).devices[0];
    assert!(device.mig);
    assert_eq!(device.uuid.as_deref(), Some("MIG-00010203-0405-0607-0809-0a0b0c0d0eee"));
}

#[test]
fn no_device_is_an_error_with_a_way_out() {
    let Some(refused) = Fake::new(&["FAIL=\"cuInit\"", "CODE=100"]) else { return };
    let error_of_start = error(&refused);
    assert!(
        matches!(&error_of_start, DeviceError::Driver { failure, .. } if failure.name == "CUDA_ERROR_NO_DEVICE")
    );
    let Some(none) = Fake::new(&["DEVICES=0"]) else { return };
    let error_of_count = error(&none);
    assert!(matches!(error_of_count, DeviceError::NoDevice { .. }), "{error_of_count}");
    assert_eq!(error_of_start.way_out(), error_of_count.way_out());
    assert!(!error_of_count.way_out().is_empty());
}

#[test]
fn a_negative_count_is_no_device() {
    let Some(fake) = Fake::new(&["DEVICES=(-1)"]) else { return };
    assert!(matches!(error(&fake), DeviceError::NoDevice { .. }));
}

#[test]
fn a_version_that_is_none_is_refused() {
    let Some(fake) = Fake::new(&["VERSION=0"]) else { return };
    assert!(matches!(error(&fake), DeviceError::OddVersion { number: 0, .. }));
}

#[test]
fn a_library_that_is_no_driver_is_told_by_what_it_lacks() {
    let Some(fake) = Fake::new(&["BROKEN"]) else { return };
    let path = fake.path().to_string_lossy().into_owned();
    assert_eq!(error(&fake), DeviceError::NotADriver { library: path, symbol: "cuInit".to_owned() });
}

#[test]
fn a_file_that_is_no_library_is_refused_in_the_loaders_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libcuda.so.1");
    std::fs::write(&path, "").unwrap();
    let error = query_library(&path, &mut |_| {}).unwrap_err();
    let DeviceError::CannotLoad { library, reason } = &error else { panic!("{error:?}") };
    assert_eq!(library, &path.to_string_lossy());
    assert!(!reason.is_empty());
    let json = serde_json::to_string(&error).unwrap();
    assert_eq!(serde_json::from_str::<DeviceError>(&json).unwrap(), error, "errors cross a pipe");
}

#[test]
fn each_kind_of_step_is_announced_in_order_and_for_its_device() {
    let Some(fake) = Fake::new(&[]) else { return };
    let mut steps: Vec<Step> = Vec::new();
    query_library(fake.path(), &mut |step| steps.push(step)).unwrap();
    for device in [0, 1] {
        let mut kinds: Vec<Action> = Vec::new();
        for step in steps.iter().filter(|step| step.device.is_none_or(|of| of == device)) {
            if !kinds.contains(&step.action) {
                kinds.push(step.action);
            }
        }
        // Waiting comes first with the copy, so only the set is the same.
        assert_eq!(kinds.len(), Action::ALL.len());
        assert_eq!(kinds.first(), Some(&Action::LoadLibrary));
        assert_eq!(kinds.last(), Some(&Action::ReleaseContext));
    }
}

#[test]
fn the_last_step_announced_is_the_one_that_hangs() {
    for (call, action) in [("cuInit", Action::Initialise), ("cuLaunchKernel", Action::Launch)] {
        let Some(fake) = Fake::new(&[&format!("HANG=\"{call}\"")]) else { return };
        let (announce, steps) = mpsc::channel();
        let path = fake.path().to_owned();
        // It never ends; the process does.
        std::thread::spawn(move || query_library(&path, &mut |step| announce.send(step).unwrap()));
        let mut last = steps.recv().unwrap();
        while last.action != action {
            last = steps.recv().expect("the step that hangs is announced");
        }
        assert_eq!(steps.recv_timeout(Duration::from_millis(300)), Err(mpsc::RecvTimeoutError::Timeout));
    }
}
