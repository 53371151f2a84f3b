#![allow(clippy::float_cmp, reason = "the values are exact")]

use cudock_facts::services::Management;
use std::path::Path;
use std::time::Duration;

use cudock_base::{Rate, UsageError, Usd};
use cudock_facts::Facts;
use cudock_facts::tables::DataAccess;
use cudock_facts::version::Date;
use cudock_plan::{Priority, Work, Workload};
use cudock_project::{Project, WorkloadFlags};
use cudock_testkit::random::{Random, cases, seed};

use super::bench_report;
use super::builder::WorkloadBuilder;
use super::inputs::Inputs;
use super::subject::Inspection;

fn today() -> Date {
    "2026-11-15".parse().unwrap()
}

/// Flags as they are typed.
fn flags(line: &str) -> WorkloadFlags {
    WorkloadFlags::parse(line.split_whitespace()).unwrap_or_else(|error| panic!("{error}"))
}

/// The workload of a file and flags, without looking at images.
fn planned(text: &str, line: &str) -> Result<Workload, String> {
    planned_with(text, line, &[])
}

/// The same with other files next to it.
fn planned_with(text: &str, line: &str, files: &[(&str, &[u8])]) -> Result<Workload, String> {
    let directory = tempfile::tempdir().unwrap();
    for (name, bytes) in files.iter().chain(&[("cudock.toml", text.as_bytes())]) {
        std::fs::write(directory.path().join(name), bytes).unwrap();
    }
    build(&Project::open(directory.path()).unwrap(), &flags(line)).map_err(|error| format!("{error:?}"))
}

fn build(project: &Project, flags: &WorkloadFlags) -> Result<Workload, UsageError> {
    let (facts, inputs) = (Facts::embedded(), Inputs::read(project, flags));
    WorkloadBuilder::new(&facts, project, flags, &inputs, today()).workload(&Inspection::default())
}

fn from_file(text: &str) -> Workload {
    planned(text, "").unwrap()
}

fn assumed<'a>(workload: &'a Workload, about: &str) -> Option<&'a str> {
    workload.assumptions.iter().find(|one| one.about == about).map(|one| one.value.as_str())
}

fn per_second(count: f64) -> Rate {
    Rate::nearest(count, Duration::from_secs(1)).unwrap()
}

fn per_hour(count: f64) -> Rate {
    Rate::nearest(count, Duration::from_secs(3600)).unwrap()
}

const fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

#[test]
fn every_kind_of_work_is_resolved() {
    assert_eq!(from_file("[workload]\nduration = \"40m\"\n").work, Work::Job { duration: minutes(40) });
    let items = from_file("[workload]\nitems = 10000\nitem_time = \"5s\"\ndeadline = \"2h\"\n");
    assert_eq!(items.work, Work::Items { items: 10_000, each: Duration::from_secs(5), at_once: None });
    assert_eq!(items.constraints.deadline, Some(minutes(120)));
    let sweep = from_file("[workload]\ntrials = 27\nat_once = 3\ntrial_time = \"20m\"\n");
    assert_eq!(sweep.work, Work::Sweep { trials: 27, at_once: 3, each: minutes(20) });
    let serve = from_file("[workload]\nrate = 5\nreplica_rate = 20.5\nfill = 80\n");
    let Work::Serve { load, replica_rate, target_percent } = serve.work else { panic!("{:?}", serve.work) };
    assert!(load.hours.iter().all(|rate| *rate == per_second(5.0)));
    assert_eq!((replica_rate, target_percent), (per_second(20.5), 80));
}

#[test]
fn a_rate_keeps_its_shape_over_the_day() {
    let text =
        "[workload]\nrate = { day = 5, night = 0, from = \"08:00\", to = \"20:00\" }\nreplica_rate = 9\n";
    let Work::Serve { load, .. } = from_file(text).work else { panic!("not served") };
    let busy: Vec<usize> = (0..24).filter(|hour| load.hours[*hour] == per_second(5.0)).collect();
    assert_eq!(busy, (8..20).collect::<Vec<_>>());
}

#[test]
fn no_rate_is_rounded_however_rare() {
    let nanos = |line: &str| {
        let Work::Serve { load, .. } = planned("", line).unwrap().work else { panic!("not served") };
        load.hours[0].nanos_per_day()
    };
    for (rate, nanos_per_day) in [
        ("1e6", 86_400_000_000_000_000_000),
        ("0.0004", 34_560_000_000),
        ("4/h", 96_000_000_000),
        ("1/h", 24_000_000_000),
        ("1/d", 1_000_000_000),
        // Once a year.
        ("0.00274/d", 2_740_000),
    ] {
        assert_eq!(nanos(&format!("--rate {rate}")), nanos_per_day, "{rate}");
    }
}

#[test]
fn the_assumed_rate_of_one_instance_is_enough_for_any_peak() {
    let mut random = Random::new(seed());
    for _ in 0..cases(200) {
        let (rate, fill) = (1 + random.below(1_000_000), 1 + random.below(100));
        let period = random.pick(&["s", "h", "d"]);
        let text = format!("[workload]\nrate = \"{rate}/{period}\"\nfill = {fill}\n");
        let Work::Serve { load, replica_rate, .. } = from_file(&text).work else { panic!("not served") };
        let filled = replica_rate.nanos_per_day() * fill as u128;
        assert!(filled >= load.hours[0].nanos_per_day() * 100, "{text}");
    }
}

#[test]
fn small_figures_are_not_rounded() {
    let spot = planned("", "--duration 1h --evictions 0.0002").unwrap().spot.unwrap();
    assert_eq!(spot.evictions, per_hour(0.0002));
    let line = "--duration 1h --measured-on H100-SXM --speed T4=0.0123";
    assert_eq!(planned("", line).unwrap().gpu.speeds["T4"], 12_300_000);
    let budget = planned("", "--duration 1h --budget 0.0004").unwrap().constraints.budget;
    assert_eq!(budget, Some(Usd::from_nanos(400_000)));
}

#[test]
fn a_flag_overrides_the_key_with_the_same_meaning() {
    let text =
        "[workload]\nitems = 10\nitem_time = \"5s\"\n[needs]\ngpus = 2\n[deploy]\nregions = \"westeurope\"\n";
    let workload = planned(text, "--items 99 --gpus 4 --region East-US --gpu-memory 40GB").unwrap();
    assert_eq!(workload.work, Work::Items { items: 99, each: Duration::from_secs(5), at_once: None });
    assert_eq!((workload.gpu.per_instance, workload.gpu.memory), (4, 40_000_000_000));
    assert_eq!(workload.constraints.regions, ["eastus"]);
}

#[test]
fn flags_of_another_kind_of_work_override_all_keys_about_it() {
    let text = "[workload]\nrate = 5\nreplica_rate = 20\n";
    assert_eq!(planned(text, "--duration 2h").unwrap().work, Work::Job { duration: minutes(120) });
    let wrong = planned("", "--duration 2h --rate 5").unwrap_err();
    assert!(wrong.contains("--duration is for a job, and --rate is for a service"), "{wrong}");
}

#[test]
fn missing_values_are_assumed_and_recorded() {
    let workload = from_file("[workload]\nkind = \"serve\"\n");
    for (about, value) in [
        ("workload.rate", "1/s all day"),
        ("workload.fill", "70 %"),
        ("workload.replica_rate", "1.429/s"),
        ("workload.cold_starts", "a request may wait for a cold start"),
        ("workload.measured_on", "times apply to any GPU"),
        ("needs.architecture", "x86_64"),
        ("deploy.spot", "no Spot machines"),
        ("start.image_size", "4.00 GB"),
        ("start.image_unpacked", "8.00 GB"),
        ("start.ready", "10 s"),
    ] {
        assert_eq!(assumed(&workload, about), Some(value), "{about}");
    }
    // The smallest whole GPU on sale is a T4.
    assert_eq!(workload.gpu.memory, 16_000_000_000);
    assert_eq!(workload.begins, today());
}

#[test]
fn given_values_are_not_recorded_as_assumptions() {
    let workload = from_file(
        r#"
        [workload]
        duration = "40m"
        measured_on = "T4"
        [needs]
        gpu_memory = "10GB"
        architecture = "x86_64"
        [start]
        image_size = "4GB"
        image_unpacked = "10GB"
        ready = "30s"
        [deploy]
        spot = false
        "#,
    );
    assert!(workload.assumptions.is_empty(), "{:?}", workload.assumptions);
    assert_eq!(workload.gpu.measured_on.as_deref(), Some("T4"));
    assert!(workload.spot.is_none());
}

#[test]
fn a_workload_needs_some_work() {
    let wrong = planned("", "").unwrap_err();
    assert!(wrong.contains("no work is specified") && wrong.contains("--duration 3h"), "{wrong}");
}

#[test]
fn unknown_names_are_reported_with_position_and_suggestion() {
    for (text, expected) in [
        (
            "[workload]\nduration = \"1h\"\n[deploy]\nregions = [\"westeurope\", \"westeurop\"]\n",
            "cudock.toml:4:26: unknown region `westeurop`; did you mean `westeurope`?",
        ),
        (
            "[workload]\nduration = \"1h\"\n[needs]\ngpu = \"T5\"\n",
            "cudock.toml:4:7: unknown GPU `T5`; did you mean `T4`?",
        ),
        (
            "[workload]\nduration = \"1h\"\nmeasured_on = \"A100\"\n",
            "cudock.toml:3:15: `A100` is ambiguous: it matches several GPUs: ",
        ),
        (
            "[workload]\nduration = \"1h\"\nmeasured_on = \"T4\"\nspeeds = { T5 = 2 }\n",
            "cudock.toml:4:12: unknown GPU `T5`; did you mean `T4`?",
        ),
        (
            "[workload]\nduration = \"1h\"\n[data]\nsize = \"1TB\"\nstorage = \"blob-hott\"\n",
            "cudock.toml:5:11: unknown storage `blob-hott`; did you mean `blob-hot`?",
        ),
        (
            "[workload]\nduration = \"1h\"\n[data]\nsize = \"1TB\"\nregion = \"atlantis\"\n",
            "cudock.toml:5:10: unknown region `atlantis`",
        ),
        (
            "[workload]\nduration = \"1h\"\n[deploy]\nservices = [\"bath\"]\n",
            "cudock.toml:4:13: unknown service `bath`; did you mean `batch`?",
        ),
        (
            "[workload]\nduration = \"1h\"\n[deploy]\nsizes = \"Standard_NC4as_T4_v4\"\n",
            "cudock.toml:4:9: unknown size or profile `Standard_NC4as_T4_v4`; did you mean `Standard_NC",
        ),
        (
            "[workload]\nduration = \"1h\"\n[data]\nstorage = \"blob-hot\"\n",
            "cudock.toml:4:1: the size of the data is missing",
        ),
        ("[workload]\nitems = 5\n", "cudock.toml:2:1: items also need `item_time`"),
        ("[workload]\ntrial_time = \"5m\"\n", "cudock.toml:2:1: `trial_time` also needs `trials`"),
        ("[workload]\nduration = \"1h\"\nmodel = \"gone.onnx\"\n", "cudock.toml:3:9: cannot read "),
        ("[workload]\nrate = 5\nbench = \"gone.json\"\n", "cudock.toml:3:9: "),
        ("[workload]\nrate = 0\n", "cudock.toml:2:8: no hour has any requests"),
    ] {
        let wrong = planned(text, "").expect_err(text);
        assert!(wrong.contains(expected), "{text}{wrong}\nexpected {expected}");
    }
}

#[test]
fn invalid_flags_are_named() {
    for (line, expected) in [
        ("--duration 0s", "--duration: must be longer than zero"),
        ("--duration 1h --gpus 0", "--gpus: must be at least 1"),
        ("--duration 1h --gpu T5", "--gpu: unknown GPU `T5`"),
        ("--duration 1h --region mars", "--region: unknown region `mars`"),
        ("--duration 1h --capability 9.0-8.0", "--capability: no compute capability is at least 9.0"),
        ("--duration 1h --capability ninety", "--capability: "),
        ("--duration 1h --budget -5", "--budget: invalid budget `-5`"),
        ("--duration 1h --budget NaN", "--budget: invalid budget `NaN`"),
        ("--duration 1h --budget 1e300", "--budget: exceeds the highest budget"),
        ("--duration 1h --evictions inf", "--evictions: invalid rate `inf`"),
        ("--duration 1h --no-spot --evictions 1", "--evictions: conflicts with --no-spot"),
        ("--duration 1h --storage blob-hot", "--storage: the size of the data is missing"),
        ("--duration 1h --speed H100=2", "--speed: needs the GPU that it is relative to"),
        ("--duration 1h --deadline 10m", "--deadline: the deadline is shorter than the job"),
        ("--duration 1h --items 3", "--duration is for one job, and --items is for many items"),
        ("--rate-night 0", "--rate-night also needs the rate by day"),
        ("--rate -5", "--rate: `-5` is negative"),
        ("--rate nan", "--rate: invalid rate `nan`"),
    ] {
        let wrong = planned("", line).expect_err(expected);
        assert!(wrong.contains(expected), "{wrong}\nexpected {expected}");
    }
}

#[test]
fn day_and_night_have_flags_of_their_own() {
    let workload = planned("", "--rate 5 --rate-night 0.5 --replica-rate 20").unwrap();
    let Work::Serve { load, .. } = &workload.work else { panic!("not served") };
    assert_eq!((load.hours[12], load.hours[0]), (per_second(5.0), per_second(0.5)));
    assert_eq!(assumed(&workload, "workload.rate"), Some("the day lasts from 08:00 to 20:00 UTC"));
}

#[test]
fn constraints_and_data_are_resolved() {
    let workload = from_file(
        r#"
        [workload]
        duration = "10h"
        begins = "2027-01-01"
        [needs]
        gpu = "A100"
        capability = "8.0"
        cpu = 8
        memory = "64GiB"
        [data]
        size = "800GB"
        storage = "blob-hot"
        region = "West Europe"
        access = "stream"
        passes = 3
        rate = "2GB/s"
        leaves = "1GB"
        [deploy]
        services = ["ml", "vm"]
        sizes = ["nc24ads_a100_v4"]
        budget = 12.5
        management = "managed"
        spot = { allow = "only", evictions = 0.02, checkpoint_every = "30m", checkpoint_takes = "30s" }
        "#,
    );
    assert_eq!(workload.gpu.models, ["A100-40", "A100-80"]);
    assert_eq!(workload.gpu.least_capability.unwrap().to_string(), "8.0");
    assert_eq!((workload.machine.vcpu, workload.machine.memory), (8, 64 << 30));
    let data = workload.data.unwrap();
    assert_eq!((data.bytes, data.region.as_deref()), (800_000_000_000, Some("westeurope")));
    assert_eq!((data.access, data.passes, data.rate_per_gpu), (DataAccess::Stream, 3, Some(2_000_000_000)));
    assert_eq!(workload.constraints.services, ["ml-serverless", "ml-cluster", "ml-endpoint", "vm"]);
    assert_eq!(workload.constraints.sizes, ["Standard_NC24ads_A100_v4"]);
    assert_eq!(workload.constraints.budget, Some(Usd::from_cents(1250)));
    assert_eq!(workload.constraints.priority, Some(Priority::Spot));
    assert_eq!(workload.constraints.management, Management::Managed);
    let spot = workload.spot.unwrap();
    assert_eq!((spot.evictions, spot.checkpoint_every), (per_hour(0.02), Some(minutes(30))));
    assert_eq!(workload.begins.to_string(), "2027-01-01");
}

#[test]
fn trials_at_a_time_default_to_the_fewest_that_meet_the_deadline() {
    let text = "[workload]\ntrials = 27\ntrial_time = \"20m\"\n";
    assert_eq!(from_file(text).work, Work::Sweep { trials: 27, at_once: 1, each: minutes(20) });
    let text = format!("{text}deadline = \"2h\"\n");
    // Six fit into two hours one after the other: five at a time make 27 in six rounds.
    assert_eq!(from_file(&text).work, Work::Sweep { trials: 27, at_once: 5, each: minutes(20) });
}

#[test]
fn a_model_determines_memory_and_weights() {
    let header = r#"{"w":{"dtype":"F32","shape":[1000000],"data_offsets":[0,4000000]}}"#;
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.resize(file.len() + 4_000_000, 0);
    let text = "[workload]\nrate = 1\nmodel = \"m.safetensors\"\n[needs]\nprecision = \"fp16\"\n";
    let workload = planned_with(text, "", &[("m.safetensors", &file)]).unwrap();
    // Half the bytes of the file, a fifth of that, and the process.
    assert_eq!(workload.gpu.memory, 2_000_000 + 400_000 + cudock_model::figures::PROCESS.value);
    assert_eq!(workload.start.weights, file.len() as u64);
    let memory = workload.assumptions.iter().find(|one| one.about == "needs.gpu_memory").unwrap();
    assert!(
        memory.source.starts_with("inferred from m.safetensors: 2.0 MB of fp16 weights + "),
        "{memory:?}"
    );
    assert!(memory.source.contains("(fp16: given in cudock.toml:5)"), "{memory:?}");
}

#[test]
fn an_unsupported_model_does_not_prevent_planning() {
    let text = "[workload]\nmodel = \"m.engine\"\n";
    let workload = planned_with(text, "", &[("m.engine", &[0; 64])]).unwrap();
    let memory = workload.assumptions.iter().find(|one| one.about == "needs.gpu_memory").unwrap();
    assert!(memory.source.contains("is neither an ONNX nor a safetensors file"), "{memory:?}");
}

#[test]
fn a_bench_report_gives_the_rate_of_one_instance() {
    let search = br#"{"schema":1,"url":"http://h","runs":[{"load":{"kind":"closed","clients":8},"goodput_per_second":900.0,
        "rows_per_second":900.0}],"search":{"target_p99_ms":50.0,"rate":640.5,"steps":[]}}"#;
    assert_eq!(bench_report::parse(search).unwrap().rate, per_second(640.5));
    let runs = br#"{"schema":1,"runs":[{"goodput_per_second":10.5,"rows_per_second":99.0},{"goodput_per_second":80.0}]}"#;
    assert_eq!(bench_report::parse(runs).unwrap().rate, per_second(80.0));
    let bare = br#"{"schema":1,"model":"m.onnx","device":{"provider":"cuda","name":"Tesla T4"},"runs":[
        {"batch":8,"rows_per_second":5000.0,"with_json_rows_per_second":1200.0}],"best_batch":8}"#;
    let measured = bench_report::parse(bare).unwrap();
    assert_eq!((measured.rate, measured.device.as_deref()), (per_second(1200.0), Some("Tesla T4")));
}

#[test]
fn a_bench_report_without_a_rate_is_rejected() {
    for (text, expected) in [
        ("{\"runs\":[]}", "it has no answered requests"),
        ("{\"runs\":[{\"goodput_per_second\":0.0}]}", "it has no answered requests"),
        (
            "{\"runs\":[],\"search\":{\"target_p99_ms\":5.0,\"rate\":null}}",
            "no rate reached a p99 of 5 ms: the instance is too slow",
        ),
        ("{}", "not a report of `cudock bench`"),
        ("nonsense", "not a report of `cudock bench`"),
    ] {
        let wrong = bench_report::parse(text.as_bytes()).unwrap_err();
        assert!(wrong.contains(expected), "{wrong}");
    }
}

#[test]
fn the_device_of_a_report_is_the_gpu_that_was_measured() {
    let bare = br#"{"device":{"name":"Tesla T4"},"runs":[{"rows_per_second":500.0}]}"#;
    let text = "[workload]\nrate = 5\nbench = \"b.json\"\n";
    let workload = planned_with(text, "", &[("b.json", bare)]).unwrap();
    assert_eq!(workload.gpu.measured_on.as_deref(), Some("T4"));
    let Work::Serve { replica_rate, .. } = workload.work else { panic!("not served") };
    assert_eq!(replica_rate, per_second(500.0));
}

#[test]
fn every_example_is_resolved() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/plan");
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let examples: Vec<_> = entries.filter(|path| path.extension().is_some_and(|it| it == "toml")).collect();
    assert!(!examples.is_empty());
    for path in examples {
        let project = Project::read(&path).unwrap_or_else(|error| panic!("{error}"));
        let result = build(&project, &WorkloadFlags::default());
        assert!(result.is_ok(), "{}: {result:?}", path.display());
    }
}
