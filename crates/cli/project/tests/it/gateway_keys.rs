//! The keys of `[gateway]` and the flags of `cudock gateway`.

use clap::Parser;
use cudock_project::GatewayOptions;

use crate::read;

/// The flags as the command has them.
#[derive(Parser)]
struct Flags {
    #[arg(long)]
    port: Option<u16>,

    #[command(flatten)]
    options: GatewayOptions,
}

#[test]
fn every_key_of_the_file_has_a_flag() {
    let keys: [(&str, &str, &[&str]); 29] = [
        ("to", "['a', 'b']", &["--to=a", "--to=b"]),
        ("listen", "['127.0.0.1:80']", &["--listen=127.0.0.1:80"]),
        ("allow_hosts", "['a.example', '::1']", &["--allow-host=a.example", "--allow-host=::1"]),
        ("path", "'/p'", &["--path=/p"]),
        ("input_key", "'x'", &["--input-key=x"]),
        ("output_keys", "['y', 'z']", &["--output-key=y", "--output-key=z"]),
        ("shared_keys", "['y', 'z']", &["--shared-key=y", "--shared-key=z"]),
        ("shared_headers", "['x-a']", &["--shared-header=x-a"]),
        ("row_rank", "3", &["--row-rank=3"]),
        ("ignore_headers", "['x-a']", &["--ignore-header=x-a"]),
        ("max_batch", "3", &["--max-batch=3"]),
        ("max_wait", "'3ms'", &["--max-wait=3ms"]),
        ("concurrency", "3", &["--concurrency=3"]),
        ("latency_target", "'3ms'", &["--latency-target=3ms"]),
        ("queue_rows", "3", &["--queue-rows=3"]),
        ("queue_time", "'3ms'", &["--queue-time=3ms"]),
        ("timeout", "'3ms'", &["--timeout=3ms"]),
        ("hold", "'3ms'", &["--hold=3ms"]),
        ("health_path", "'/h'", &["--health-path=/h"]),
        ("health_timeout", "'3ms'", &["--health-timeout=3ms"]),
        ("retry_posts", "true", &["--retry-posts"]),
        ("wake", "['docker', 'start', 'm']", &["--wake", "docker start m"]),
        ("idle_stop", "['docker', 'stop']", &["--idle-stop", "docker stop"]),
        ("idle_after", "'3ms'", &["--idle-after=3ms"]),
        ("upstream_ca", "'ca.pem'", &["--upstream-ca=ca.pem"]),
        ("max_body", "'8KiB'", &["--max-body=8KiB"]),
        ("memory", "'8KiB'", &["--memory=8KiB"]),
        ("client_timeout", "'3ms'", &["--client-timeout=3ms"]),
        ("drain_timeout", "'3ms'", &["--drain-timeout=3ms"]),
    ];
    for (key, value, flags) in keys {
        let file = read(&format!("[gateway]\n{key} = {value}\n")).unwrap().gateway;
        assert_ne!(file, GatewayOptions::default(), "{key}");
        let flags = Flags::try_parse_from(["gateway"].iter().chain(flags)).unwrap();
        assert_eq!((flags.options.clone(), flags.port), (file.clone(), None), "{key}");
        assert_eq!(GatewayOptions::default().or(file.clone()), file, "{key}");
        assert_eq!(flags.options.or(GatewayOptions::default()), file, "{key}");
    }
}

#[test]
fn a_directory_without_a_file_has_no_options() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(GatewayOptions::in_directory(directory.path()).unwrap(), GatewayOptions::default());
    let file = directory.path().join(cudock_project::FILE_NAME);
    std::fs::write(&file, "[gateway]\nupstream_ca = 'ca.pem'\n").unwrap();
    let options = GatewayOptions::in_directory(directory.path()).unwrap();
    assert_eq!(options.upstream_ca, Some(directory.path().join("ca.pem")));
    std::fs::write(&file, "[gateway]\nto = 5\n").unwrap();
    assert!(GatewayOptions::in_directory(directory.path()).is_err());
}
