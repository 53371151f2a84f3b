//! Files that declare dependencies.

use super::workdir::{Directory, codes, finding};

fn result(file: &str, contents: &str, arguments: &[&str]) -> serde_json::Value {
    Directory::with(file, contents).result(&[&[file], arguments].concat())
}

#[test]
fn the_same_torch_is_found_in_every_kind_of_file() {
    let files = [
        ("requirements.txt", "# models\nnumpy==2.1.0\ntorch==2.6.0\n", 3),
        (
            "pyproject.toml",
            "[project]\nname = \"app\"\nversion = \"1\"\ndependencies = [\n  \"torch==2.6.0\",\n]\n",
            5,
        ),
        (
            "uv.lock",
            "version = 1\nrequires-python = \">=3.12\"\n\n[[package]]\nname = \"torch\"\nversion = \"2.6.0\"\n\
             source = { registry = \"https://index.example/simple\" }\n",
            5,
        ),
        ("environment.yml", "name: app\ndependencies:\n  - python=3.12\n  - pip:\n      - torch==2.6.0\n", 5),
        ("Dockerfile", "FROM python:3.12\nRUN pip install torch==2.6.0\n", 2),
    ];
    for (file, contents, line) in files {
        let works = result(file, contents, &["--gpu", "V100", "--driver", "580"]);
        assert_eq!(works["verdict"], "works", "{file}: {works:#}");
        let fails = result(file, contents, &["--gpu", "B200", "--driver", "580"]);
        assert_eq!(fails["error"]["code"], 209, "{file}: {fails:#}");
        let seen = &finding(&fails, "CD0501")["evidence"][0]["path"];
        assert_eq!(*seen, format!("{file}:{line}"), "{file}: {fails:#}");
    }
}

#[test]
fn the_index_and_the_tag_choose_the_build() {
    let v100 = ["--gpu", "V100", "--driver", "580"];
    let by_index = "--index-url https://download.pytorch.org/whl/cu126\ntorch==2.15.0\n";
    assert_eq!(result("requirements.txt", by_index, &v100)["verdict"], "works");
    assert_eq!(result("requirements.txt", "torch==2.15.0+cu126\n", &v100)["verdict"], "works");
    assert_eq!(result("requirements.txt", "torch==2.15.0\n", &v100)["error"]["code"], 209);
    let cpu = result("requirements.txt", "torch==2.15.0+cpu\n", &v100);
    assert_eq!((&cpu["verdict"], codes(&cpu)), (&"cpu".into(), vec!["CD0401"]));
}

#[test]
fn conda_s_own_package_has_its_cuda_version_beside_it() {
    let contents = "name: app\nchannels:\n  - pytorch\n  - nvidia\ndependencies:\n  - pytorch=2.5.1\n  - pytorch-cuda=12.4\n";
    let works = result("environment.yml", contents, &["--gpu", "T4", "--driver", "550"]);
    assert_eq!(
        (&works["verdict"], &works["artifacts"][0]["name"]),
        (&"works".into(), &"pytorch 2.5.1 (conda)".into()),
        "{works:#}"
    );
    let old = result("environment.yml", contents, &["--gpu", "T4", "--driver", "470"]);
    assert_eq!(old["error"]["code"], 35, "{old:#}");
}

#[test]
fn a_version_that_is_left_open_is_unknown_in_every_kind_of_file() {
    let files = [
        ("requirements.txt", "torch>=2\n"),
        ("pyproject.toml", "[project]\nname = \"app\"\nversion = \"1\"\ndependencies = [\"torch\"]\n"),
        ("environment.yml", "dependencies:\n  - pip:\n      - torch\n"),
        ("Dockerfile", "FROM nvidia/cuda:12.6.3-runtime-ubuntu24.04\nRUN pip install torch\n"),
    ];
    for (file, contents) in files {
        let result = result(file, contents, &["--gpu", "T4", "--driver", "570"]);
        assert_eq!(result["verdict"], "unknown", "{file}: {result:#}");
        let finding = finding(&result, "CD0410");
        assert_eq!(finding["severity"], "warning");
        assert!(finding["fix"].as_str().unwrap().contains("==VERSION"), "{file}: {finding}");
    }
}

#[test]
fn the_base_image_of_a_dockerfile_refuses_drivers_it_was_not_made_for() {
    let directory = Directory::with(
        "Dockerfile",
        "FROM nvidia/cuda:12.6.3-runtime-ubuntu24.04\nRUN pip install torch==2.6.0\n",
    );
    let refused = directory.result(&["Dockerfile", "--gpu", "T4", "--driver", "525"]);
    assert_eq!((&refused["verdict"], codes(&refused)), (&"fails".into(), vec!["CD0602"]), "{refused:#}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("cuda>=12.6"), "{refused:#}");
    let works = directory.result(&["Dockerfile", "--gpu", "T4", "--driver", "570"]);
    assert_eq!((&works["verdict"], codes(&works)), (&"works".into(), Vec::new()), "{works:#}");
}

#[test]
fn a_dockerfile_whose_base_is_not_known_and_that_installs_nothing_is_unknown() {
    let result = result("Dockerfile", "FROM registry.example/team/base:3\nCOPY . /app\n", &["--gpu", "T4"]);
    assert_eq!(result["verdict"], "unknown", "{result:#}");
    assert_eq!(finding(&result, "CD0610")["severity"], "warning");
}

#[test]
fn a_file_without_a_framework_leaves_the_work_to_the_cpu() {
    let result = result("requirements.txt", "requests==2.32.3\n", &["--gpu", "T4"]);
    assert_eq!((&result["verdict"], codes(&result)), (&"cpu".into(), vec!["CD0609"]), "{result:#}");
}

#[test]
fn a_broken_file_is_refused_with_line_and_column() {
    let files = [
        (
            "pyproject.toml",
            "[project]\nname = \"app\"\ndependencies = [\"torch==2.6.0\"\n",
            "pyproject.toml:3:",
        ),
        ("uv.lock", "version = 1\n\n[[package]\nname = \"torch\"\n", "uv.lock:3:"),
        ("environment.yml", "name: app\ndependencies:\n  - pytorch=2.5.1\n - bad\n", "environment.yml:4:2: "),
    ];
    for (file, contents, place) in files {
        let message = Directory::with(file, contents).refused(&[file, "--gpu", "T4"]);
        let after = message.split_once(place).unwrap_or_else(|| panic!("{place} is not in {message}")).1;
        let column =
            place.ends_with(' ') || after.split(':').next().is_some_and(|word| word.parse::<u32>().is_ok());
        assert!(column, "{message}");
    }
}

#[test]
fn what_the_tables_do_not_have_is_unknown_and_never_the_cpu() {
    let h100 = ["--gpu", "H100", "--driver", "580"];
    for contents in ["torch==99.0\n", "vllm==0.6.0\n", "spconv-cu120==2.3.6\n", "flash-attn==2.8.0\n"] {
        let result = result("requirements.txt", contents, &h100);
        assert_eq!(result["verdict"], "unknown", "{contents}: {result:#}");
    }
}

#[test]
fn an_extension_of_unknown_code_does_not_hide_the_frameworks_answer() {
    let h100 = ["--gpu", "H100", "--driver", "580"];
    let both = result("requirements.txt", "torch==2.6.0\nflash-attn==2.8.0\ntorchvision==0.21.0\n", &h100);
    assert_eq!(both["verdict"], "works", "{both:#}");
    assert!(codes(&both).contains(&"CD0410") || codes(&both).contains(&"CD0408"), "{both:#}");
}

#[test]
fn an_extra_of_jax_brings_its_plugin() {
    let contents = "jax[cuda12]==0.5.0\n";
    let result = result("requirements.txt", contents, &["--gpu", "A100", "--driver", "570"]);
    assert_eq!(result["verdict"], "works", "{result:#}");
}

#[test]
fn a_project_that_is_not_built_is_judged_by_what_it_asks_for() {
    let directory = Directory::with("requirements.txt", "torch==2.6.0\n");
    let result = directory.result(&[".", "--gpu", "B200", "--driver", "580"]);
    assert_eq!(result["error"]["code"], 209, "{result:#}");
}
