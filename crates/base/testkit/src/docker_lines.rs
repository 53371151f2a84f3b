//! Command lines of `docker run` from the documentation of popular images, and the container that docker makes of each:
//! `data/docker-lines.toml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// A command line, and its meaning in docker. Unset fields are docker's defaults.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of docker's")]
pub struct DockerLine {
    /// The documentation of the command line.
    pub source: String,
    pub line: String,
    pub image: String,
    pub command: Vec<String>,
    pub entrypoint: Option<String>,
    pub rm: bool,
    pub detach: bool,
    pub tty: bool,
    pub stdin: bool,
    pub name: Option<String>,
    pub user: Option<String>,
    pub workdir: Option<String>,
    /// NAME=VALUE.
    pub env: Vec<String>,
    /// `all`, a number, or `device=` and a list.
    pub gpus: Option<String>,
    pub runtime: Option<String>,
    /// SOURCE:TARGET of directories and files of the host.
    pub binds: Vec<String>,
    /// Sources that docker does not create.
    pub existing: Vec<String>,
    /// NAME:TARGET of named volumes.
    pub volumes: Vec<String>,
    pub ports: Vec<String>,
    pub publish_all: bool,
    pub network: Option<String>,
    pub hosts: Vec<String>,
    pub ipc: Option<String>,
    /// Bytes of shared memory.
    pub shm: Option<u64>,
    pub ulimits: Vec<String>,
    pub cap_add: Vec<String>,
    pub seccomp: Option<String>,
    pub devices: Vec<String>,
    pub groups: Vec<String>,
    pub restart: Option<String>,
    pub pull: Option<String>,
    /// The part that cudock refuses, and a word of the suggested alternative.
    pub refused: Option<String>,
    pub instead: Option<String>,
    placeholders: BTreeMap<String, String>,
    variables: BTreeMap<String, String>,
}

/// The shell in which a line is typed.
#[derive(Debug, Clone)]
pub struct Shell {
    pub home: PathBuf,
    /// The working directory, which must exist.
    pub directory: PathBuf,
}

/// All lines.
pub fn docker_lines() -> Vec<DockerLine> {
    #[derive(Deserialize)]
    struct LineTable {
        line: Vec<DockerLine>,
    }
    toml::from_str::<LineTable>(include_str!("../data/docker-lines.toml")).unwrap().line
}

impl DockerLine {
    /// The words after `docker run`, as a shell makes them of the line.
    pub fn words(&self, shell: &Shell) -> Vec<String> {
        let line =
            self.placeholders.iter().fold(self.line.clone(), |line, (name, value)| line.replace(name, value));
        let set = self.variables.iter().map(|(name, value)| format!("{name}=\"{value}\"\n"));
        let script = format!("docker() {{ printf '%s\\0' \"$@\"; }}\n{}{line}", set.collect::<String>());
        let mut command = Command::new("sh");
        command.args(["-euc", &script]).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", &shell.home);
        let output = command.current_dir(&shell.directory).env("PWD", &shell.directory).output().unwrap();
        assert!(output.status.success(), "{}: {}", self.line, String::from_utf8_lossy(&output.stderr));
        let words = String::from_utf8(output.stdout).unwrap();
        let mut words = words.strip_suffix('\0').unwrap().split('\0').map(str::to_owned);
        assert_eq!(words.next().as_deref(), Some("run"));
        words.collect()
    }

    /// The variables that are passed on by name, with their values.
    pub fn passed_on(&self, words: &[String]) -> Vec<(String, String)> {
        let given = self.env.iter().filter_map(|variable| variable.split_once('='));
        let by_name = given.filter(|(name, _)| words.iter().any(|word| word == name));
        by_name.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}

impl Shell {
    /// A text of the data, with what stands for the shell's directories and user.
    pub fn expand(&self, text: &str) -> String {
        let show = |path: &Path| path.to_str().unwrap().to_owned();
        let uid = rustix::process::getuid().as_raw().to_string();
        text.replace("{home}", &show(&self.home))
            .replace("{pwd}", &show(&self.directory))
            .replace("{uid}", &uid)
    }

    /// The two parts of a mount of the data.
    pub fn mount(&self, text: &str) -> (String, String) {
        let expanded = self.expand(text);
        let (source, target) = expanded.rsplit_once(':').unwrap();
        (source.to_owned(), target.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_from_many_projects_and_have_a_source() {
        let lines = docker_lines();
        let mut projects: Vec<_> =
            lines.iter().map(|line| line.source.split('/').take(5).collect::<Vec<_>>()).collect();
        projects.sort();
        projects.dedup();
        assert!(lines.len() >= 60 && projects.len() >= 30, "{} of {}", lines.len(), projects.len());
        assert!(lines.iter().all(|line| line.source.starts_with("https://")));
    }

    #[test]
    fn a_shell_makes_words_of_a_line() {
        let directory = tempfile::tempdir().unwrap();
        let shell = Shell { home: "/home/ann".into(), directory: directory.path().to_owned() };
        let line = DockerLine {
            line: "docker run -v \"$(pwd)/a b\":/x -e TOKEN <image>:$TAG --flag '$x'".to_owned(),
            env: vec!["TOKEN=t".to_owned(), "OTHER=o".to_owned()],
            placeholders: [("<image>".to_owned(), "app".to_owned())].into(),
            variables: [("TAG".to_owned(), "1".to_owned())].into(),
            ..DockerLine::default()
        };
        let arguments = line.words(&shell);
        let volume = format!("{}/a b:/x", directory.path().display());
        assert_eq!(arguments, ["-v", &volume, "-e", "TOKEN", "app:1", "--flag", "$x"]);
        assert_eq!(line.passed_on(&arguments), [("TOKEN".to_owned(), "t".to_owned())]);
    }
}
