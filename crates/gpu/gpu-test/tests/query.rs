//! Tests the query with a fake driver library, which keeps device memory in host memory and interprets the kernel.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod support;

use std::sync::mpsc;
use std::time::Duration;

use cudock_gpu_test::{ComputeResult, DeviceError, DeviceReport, QueryAction, QueryStep, query_library};
use support::Fake;

/// The number of elements in the test computation.
const NUMBERS: u32 = 1 << 20;

/// The calls for one device in order, by symbol.
const CALLS_ON_A_DEVICE: [(&str, QueryAction); 19] = [
    ("cuDeviceGet", QueryAction::OpenDevice),
    ("cuDeviceGetName", QueryAction::Name),
    ("cuDeviceGetUuid_v2", QueryAction::Uuid),
    ("cuDeviceGetAttribute", QueryAction::Capability),
    ("cuDeviceTotalMem_v2", QueryAction::TotalMemory),
    ("cuDeviceGetPCIBusId", QueryAction::BusId),
    ("cuDevicePrimaryCtxRetain", QueryAction::RetainContext),
    ("cuCtxSetCurrent", QueryAction::EnterContext),
    ("cuMemGetInfo_v2", QueryAction::FreeMemory),
    ("cuMemAlloc_v2", QueryAction::Allocate),
    ("cuMemcpyHtoD_v2", QueryAction::CopyIn),
    ("cuCtxSynchronize", QueryAction::Synchronize),
    ("cuModuleLoadData", QueryAction::LoadKernel),
    ("cuModuleGetFunction", QueryAction::FindKernel),
    ("cuLaunchKernel", QueryAction::Launch),
    ("cuMemcpyDtoH_v2", QueryAction::CopyOut),
    ("cuModuleUnload", QueryAction::UnloadKernel),
    ("cuMemFree_v2", QueryAction::FreeAllocated),
    ("cuDevicePrimaryCtxRelease_v2", QueryAction::ReleaseContext),
];

fn report(fake: &Fake) -> DeviceReport {
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
fn an_error_before_any_device_is_known_has_step_and_code() {
    for (call, action) in [
        ("cuInit", QueryAction::Initialize),
        ("cuDriverGetVersion", QueryAction::DriverVersion),
        ("cuDeviceGetCount", QueryAction::CountDevices),
    ] {
        let Some(fake) = Fake::new(&[&format!("FAIL=\"{call}\""), "CODE=803"]) else { return };
        let DeviceError::Driver { failure, library } = error(&fake) else {
            panic!("{call}: {:?}", error(&fake))
        };
        assert_eq!(library, fake.path().to_string_lossy());
        assert_eq!(failure.step, QueryStep { device: None, action });
        assert_eq!((failure.code, failure.name.as_str()), (803, "cudaErrorSystemDriverMismatch"));
        assert!(failure.hints.iter().any(|hint| hint.contains("compat")), "{failure:?}");
    }
}

#[test]
fn an_error_at_any_step_is_reported_and_all_resources_are_released() {
    for (call, action) in CALLS_ON_A_DEVICE {
        let Some(fake) = Fake::logging(&["DEVICES=1", &format!("FAIL=\"{call}\""), "CODE=719"]) else {
            return;
        };
        let device = &report(&fake).devices[0];
        let ComputeResult::Failed(failure) = &device.computes else {
            panic!("{call}: {:?}", device.computes)
        };
        assert_eq!(failure.step, QueryStep { device: Some(0), action }, "{call}");
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
fn a_failing_device_does_not_affect_the_other() {
    for call in ["cuDeviceGet", "cuLaunchKernel"] {
        let Some(fake) = Fake::new(&[&format!("FAIL=\"{call}\""), "FAIL_DEVICE=0"]) else { return };
        let report = report(&fake);
        let [broken, sound] = &report.devices[..] else { panic!("{call}: two devices") };
        assert!(matches!(broken.computes, ComputeResult::Failed(_)), "{call}");
        assert_eq!(sound.computes, ComputeResult::Yes, "{call}");
        assert!(!report.all_compute());
    }
}

#[test]
fn all_calls_are_made_if_nothing_fails() {
    let Some(fake) = Fake::logging(&["DEVICES=1"]) else { return };
    assert!(report(&fake).all_compute());
    for (call, _) in CALLS_ON_A_DEVICE {
        assert!(fake.succeeded(call) > 0, "{call} is listed but never called");
    }
}

#[test]
fn a_single_wrong_number_is_found() {
    for at in [0, 4711, NUMBERS - 1] {
        let Some(fake) = Fake::new(&["DEVICES=1", &format!("WRONG_AT={at}")]) else { return };
        let report = report(&fake);
        let ComputeResult::Wrong { element, expected, found, wrong, of } = report.devices[0].computes else {
            panic!("{report:?}")
        };
        // The kernel runs three times, and rewrites the element each time.
        assert_eq!((element, expected ^ found, wrong, of), (at, 1 << 30, 1, NUMBERS));
        assert!(!report.hints().is_empty());
    }
}

#[test]
fn a_kernel_that_did_not_run_is_noticed() {
    let Some(fake) = Fake::new(&["DEVICES=1", "IDLE"]) else { return };
    let result = &report(&fake).devices[0].computes;
    assert!(matches!(result, ComputeResult::Wrong { element: 0, wrong: NUMBERS, .. }), "{result:?}");
}

#[test]
fn an_old_driver_without_newer_functions_works() {
    let Some(fake) = Fake::new(&["OLD", "VERSION=9020"]) else { return };
    let report = report(&fake);
    assert!(report.all_compute(), "{}", report.text());
    assert_eq!(report.driver_cuda.to_string(), "9.2");
    assert_eq!(report.devices[0].uuid.as_deref(), Some("GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"));
}

#[test]
fn error_names_missing_in_an_old_driver_come_from_the_fact_tables() {
    let Some(fake) = Fake::new(&["OLD", "FAIL=\"cuInit\"", "CODE=100"]) else { return };
    let error = error(&fake);
    let path = fake.path().display();
    assert_eq!(
        error.to_string(),
        format!(
            "initializing the driver (cuInit) failed: no CUDA-capable device is detected (cudaErrorNoDevice, error 100), \
             with {path}"
        )
    );
}

#[test]
fn a_mig_instance_has_its_own_uuid() {
    let Some(fake) = Fake::new(&["MIG", "DEVICES=1"]) else { return };
    let device = &report(&fake).devices[0];
    assert!(device.mig);
    assert_eq!(device.uuid.as_deref(), Some("MIG-00010203-0405-0607-0809-0a0b0c0d0eee"));
}

#[test]
fn no_device_is_an_error_with_hints() {
    let Some(refused) = Fake::new(&["FAIL=\"cuInit\"", "CODE=100"]) else { return };
    let error_of_start = error(&refused);
    assert!(
        matches!(&error_of_start, DeviceError::Driver { failure, .. } if failure.name == "CUDA_ERROR_NO_DEVICE")
    );
    let Some(none) = Fake::new(&["DEVICES=0"]) else { return };
    let error_of_count = error(&none);
    assert!(matches!(error_of_count, DeviceError::NoDevice { .. }), "{error_of_count}");
    assert_eq!(error_of_start.hints(), error_of_count.hints());
    assert!(!error_of_count.hints().is_empty());
}

#[test]
fn a_negative_count_means_no_device() {
    let Some(fake) = Fake::new(&["DEVICES=(-1)"]) else { return };
    assert!(matches!(error(&fake), DeviceError::NoDevice { .. }));
}

#[test]
fn an_invalid_version_is_rejected() {
    let Some(fake) = Fake::new(&["VERSION=0"]) else { return };
    assert!(matches!(error(&fake), DeviceError::OddVersion { number: 0, .. }));
}

#[test]
fn a_library_that_is_not_a_driver_is_reported_with_the_missing_symbol() {
    let Some(fake) = Fake::new(&["BROKEN"]) else { return };
    let path = fake.path().to_string_lossy().into_owned();
    assert_eq!(error(&fake), DeviceError::NotADriver { library: path, symbol: "cuInit".to_owned() });
}

#[test]
fn a_file_that_is_not_a_library_is_reported_with_the_loaders_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("libcuda.so.1");
    std::fs::write(&path, "").unwrap();
    let error = query_library(&path, &mut |_| {}).unwrap_err();
    let DeviceError::CannotLoad { library, reason } = &error else { panic!("{error:?}") };
    assert_eq!(library, &path.to_string_lossy());
    assert!(!reason.is_empty());
    let json = serde_json::to_string(&error).unwrap();
    assert_eq!(serde_json::from_str::<DeviceError>(&json).unwrap(), error, "errors survive serialization");
}

#[test]
fn each_kind_of_step_is_announced_for_each_device() {
    let Some(fake) = Fake::new(&[]) else { return };
    let mut steps: Vec<QueryStep> = Vec::new();
    query_library(fake.path(), &mut |step| steps.push(step)).unwrap();
    for device in [0, 1] {
        let mut kinds: Vec<QueryAction> = Vec::new();
        for step in steps.iter().filter(|step| step.device.is_none_or(|of| of == device)) {
            if !kinds.contains(&step.action) {
                kinds.push(step.action);
            }
        }
        // Synchronization first happens with the copy, so only the set is the same.
        assert_eq!(kinds.len(), QueryAction::ALL.len());
        assert_eq!(kinds.first(), Some(&QueryAction::LoadLibrary));
        assert_eq!(kinds.last(), Some(&QueryAction::ReleaseContext));
    }
}

#[test]
fn the_last_announced_step_is_the_one_that_hangs() {
    for (call, action) in [("cuInit", QueryAction::Initialize), ("cuLaunchKernel", QueryAction::Launch)] {
        let Some(fake) = Fake::new(&[&format!("HANG=\"{call}\"")]) else { return };
        let (announce, steps) = mpsc::channel();
        let path = fake.path().to_owned();
        // It never ends, but the process does.
        std::thread::spawn(move || query_library(&path, &mut |step| announce.send(step).unwrap()));
        let mut last = steps.recv().unwrap();
        while last.action != action {
            last = steps.recv().expect("the step that hangs is announced");
        }
        assert_eq!(steps.recv_timeout(Duration::from_millis(300)), Err(mpsc::RecvTimeoutError::Timeout));
    }
}
