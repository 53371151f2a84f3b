//! The keys a plan is made from.

use std::path::Path;
use std::time::Duration;

use cudock_base::{Arch, Rate};
use cudock_facts::services::Management;
use cudock_facts::tables::DataAccess;
use cudock_project::{ByteRate, ByteSize, DayRate, Project, RequestRate, SpotUse, TimeSpan};

use crate::read;

fn minutes(count: u64) -> TimeSpan {
    TimeSpan(Duration::from_secs(count * 60))
}

fn per_second(count: f64) -> Rate {
    Rate::nearest(count, Duration::from_secs(1)).unwrap()
}

#[test]
fn a_training_job_says_what_it_needs_reads_and_bears() {
    let manifest = read(
        r#"
        [workload]
        kind = "job"
        duration = "72h"
        measured_on = "A100-80"
        speeds = { H100 = 2.8 }
        begins = 2026-12-01
        deadline = "5d"
        training = true
        batch = 16

        [needs]
        gpu_memory = "80GB"
        precision = "bf16"
        gpus = 8
        nodes = 2
        nvlink = true
        infiniband = true
        capability = { least = "8.0", greatest = 9.0 }
        gpu = ["A100-80", "H100"]
        cpu = 64
        memory = "900GiB"
        architecture = "amd64"

        [data]
        size = "2TB"
        storage = "blob-hot"
        region = "westeurope"
        access = "either"
        passes = 3
        rate = "200MB/s"
        read_size = "4MiB"
        leaves = "10GB"

        [start]
        image_size = "8GB"
        image_unpacked = "20GB"
        weights = "14GB"
        ready = "30s"
        jit = "5s"

        [deploy]
        regions = "westeurope"
        services = ["ml", "vm"]
        sizes = ["Standard_ND96isr_H100_v5"]
        budget = 12000.50
        management = "managed"
        [deploy.spot]
        allow = "only"
        evictions = 0.05
        checkpoint_every = "30m"
        checkpoint_takes = "1m"
        "#,
    )
    .unwrap();
    let (work, needs, data, deploy) = (&manifest.workload, &manifest.needs, &manifest.data, &manifest.deploy);
    assert_eq!(work.duration, Some(minutes(72 * 60)));
    assert_eq!(work.speeds["H100"], 2.8);
    assert_eq!(work.begins.unwrap().to_string(), "2026-12-01");
    assert_eq!(needs.gpu, ["A100-80", "H100"]);
    assert_eq!((needs.gpus, needs.nodes), (Some(8), Some(2)));
    assert_eq!(needs.capability.unwrap().least.unwrap().to_string(), "8.0");
    assert_eq!(needs.capability.unwrap().greatest.unwrap().to_string(), "9.0");
    assert_eq!(needs.architecture, Some(Arch::X86_64));
    assert_eq!(data.rate, Some(ByteRate(200_000_000)));
    assert_eq!(data.access, Some(DataAccess::Either));
    assert_eq!(manifest.start.weights, Some(ByteSize(14_000_000_000)));
    assert_eq!(deploy.regions, ["westeurope"]);
    assert_eq!(deploy.management, Some(Management::Managed));
    let spot = deploy.spot.unwrap();
    assert_eq!((spot.allowed, spot.evictions), (SpotUse::Only, Some(0.05)));
    assert_eq!((spot.checkpoint_every, spot.checkpoint_takes), (Some(minutes(30)), Some(minutes(1))));
}

#[test]
fn spot_is_a_word_or_a_table() {
    let spot =
        |text: &str| read(&format!("[deploy]\nspot = {text}\n")).map(|it| it.deploy.spot.unwrap().allowed);
    assert_eq!(spot("true"), Ok(SpotUse::Yes));
    assert_eq!(spot("false"), Ok(SpotUse::No));
    assert_eq!(spot("\"only\""), Ok(SpotUse::Only));
    assert_eq!(spot("{ evictions = 0.1 }"), Ok(SpotUse::Yes));
    assert_eq!(
        spot("\"onyl\""),
        Err("cudock.toml:2:8: unknown variant `onyl`; did you mean `only`?".to_owned())
    );
}

#[test]
fn a_capability_alone_is_the_least() {
    for text in ["\"8.6\"", "8.6", "{ least = \"8.6\" }"] {
        let range = read(&format!("[needs]\ncapability = {text}\n")).unwrap().needs.capability.unwrap();
        assert_eq!((range.least.unwrap().to_string(), range.greatest), ("8.6".to_owned(), None), "{text}");
    }
    let wrong = read("[needs]\ncapability = \"sm_90\"\n").unwrap_err();
    assert!(wrong.starts_with("cudock.toml:2:14: "), "{wrong}");
}

#[test]
fn a_rate_is_a_number_a_shape_or_a_number_for_each_hour() {
    let rate = |text: &str| read(&format!("[workload]\nrate = {text}\n")).map(|it| it.workload.rate.unwrap());
    let level = |count: f64| DayRate::level(RequestRate(per_second(count)));
    assert_eq!(rate("5"), Ok(level(5.0)));
    assert_eq!(rate("0.5"), Ok(level(0.5)));
    assert_eq!(rate("\"36/h\""), Ok(level(0.01)));
    let shaped = rate(r#"{ day = 5, night = 0, from = "08:00", to = "20:00" }"#).unwrap();
    for (hour, rate) in shaped.hours.iter().enumerate() {
        let expected = if (8..20).contains(&hour) { 5.0 } else { 0.0 };
        assert_eq!(rate.0, per_second(expected), "hour {hour}");
    }
    let past_midnight = rate(r#"{ day = 2, night = 1, from = "22:00", to = "06:00" }"#).unwrap();
    assert_eq!(past_midnight.hours.iter().filter(|rate| rate.0 > per_second(1.5)).count(), 8);
    let hours = (0..24).map(|hour| hour.to_string()).collect::<Vec<_>>().join(", ");
    assert_eq!(rate(&format!("[{hours}]")).unwrap().hours[23], RequestRate(per_second(23.0)));
}

#[test]
fn an_invalid_rate_is_rejected_with_a_reason() {
    let rate = |text: &str| read(&format!("[workload]\nrate = {text}\n")).unwrap_err();
    assert_eq!(rate("[1, 2]"), "cudock.toml:2:8: expected 24 rates, one per hour, found 2");
    assert_eq!(rate("-5"), "cudock.toml:2:8: `-5` is negative; rates must not be");
    assert!(rate("nan").starts_with("cudock.toml:2:8: invalid rate `NaN`: "), "{}", rate("nan"));
    assert!(rate("inf").starts_with("cudock.toml:2:8: invalid rate `inf`: "), "{}", rate("inf"));
    let overlap = rate(r#"{ day = 5, night = 0, from = "08:00", to = "08:00" }"#);
    assert!(overlap.contains("the same hour: day and night overlap"), "{overlap}");
    let odd = rate(r#"{ day = 5, from = "08:30", to = "20:00" }"#);
    assert_eq!(odd, "cudock.toml:2:26: invalid hour `08:30`: expected a full hour in UTC such as 08:00");
}

#[test]
fn a_rate_on_the_command_line_has_the_same_forms() {
    assert_eq!("5".parse(), Ok(DayRate::level(RequestRate(per_second(5.0)))));
    let shaped = DayRate::shaped(RequestRate(per_second(5.0)), RequestRate(Rate::ZERO), 8, 20).unwrap();
    assert_eq!("5,0@08:00-20:00".parse(), Ok(shaped));
    for wrong in ["", "5,0", "5@08:00-20:00", "5,0@8-20", "5,0@08:00-08:00", "x", "1,2,3", "-1"] {
        assert!(wrong.parse::<DayRate>().is_err(), "{wrong}");
    }
}

#[test]
fn every_value_can_be_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("train.toml");
    std::fs::write(
        &path,
        "[needs]\ngpu_memory = \"16GB\"\n[deploy]\nregions = [\n  \"westeurope\",\n  \"atlantis\",\n]\ngpu.x = 1\n",
    )
    .unwrap();
    assert!(Project::read(&path).unwrap_err().to_string().contains("train.toml:8:1: unknown field `gpu`"));
    std::fs::write(
        &path,
        "[needs]\ngpu_memory = \"16GB\"\n[deploy]\nregions = [\n  \"westeurope\",\n  \"atlantis\",\n]\n",
    )
    .unwrap();
    let project = Project::read(&path).unwrap();
    assert_eq!(project.directory, directory.path());
    assert_eq!(project.text.location("needs.gpu_memory"), "train.toml:2");
    assert!(project.text.has("deploy.regions.1") && !project.text.has("deploy.regions.2"));
    let wrong = project.text.value_error(
        "deploy.regions.1",
        "unknown region `atlantis`",
        Some("polandcentral".to_owned()),
    );
    assert!(
        wrong
            .to_string()
            .ends_with("train.toml:6:3: unknown region `atlantis`; did you mean `polandcentral`?"),
        "{wrong}"
    );
}

#[test]
fn a_project_without_a_file_says_nothing() {
    let project = Project::without_file(Path::new("."));
    assert_eq!(project.manifest, cudock_project::Manifest::default());
    assert!(!project.text.has("workload"));
}

#[test]
fn every_key_with_a_unit_refuses_a_bare_number_with_a_suggestion() {
    let sizes = [
        ("needs", "gpu_memory"),
        ("needs", "memory"),
        ("data", "size"),
        ("data", "read_size"),
        ("data", "leaves"),
        ("start", "image_size"),
        ("start", "image_unpacked"),
        ("start", "weights"),
        ("serve", "gpu_memory"),
        ("serve", "max_body"),
        ("serve", "memory"),
        ("serve", "model_memory"),
    ];
    let times = [
        ("workload", "duration"),
        ("workload", "item_time"),
        ("workload", "trial_time"),
        ("workload", "deadline"),
        ("start", "ready"),
        ("start", "jit"),
        ("deploy", "ttl"),
        ("serve", "max_wait"),
        ("serve", "latency_target"),
        ("serve", "queue_time"),
        ("serve", "engine_timeout"),
        ("serve", "client_timeout"),
        ("serve", "drain_timeout"),
        ("serve", "idle_unload"),
    ];
    let sizes = sizes.iter().map(|key| (key, "40GB or 40GiB"));
    let times = times.iter().map(|key| (key, "40s or 40m or 40h"));
    for ((table, key), suggestion) in sizes.chain(times).chain([(&("data", "rate"), "40MB/s or 40GB/s")]) {
        for written in ["40", "\"40\""] {
            let error = read(&format!("[{table}]\n{key} = {written}\n")).map(|_| ()).unwrap_err();
            assert!(
                error.contains(&format!("`40` has no unit; write {suggestion}")),
                "{table}.{key}: {error}"
            );
            assert!(error.contains("cudock.toml:2:"), "{error}");
        }
        let error = read(&format!("[{table}]\n{key} = true\n")).map(|_| ()).unwrap_err();
        assert!(error.contains("expected a string"), "{table}.{key}: {error}");
    }
}
