//! Detects the language of a text by its content: file extensions are unreliable, and snippets have none.

use crate::read::names::{is_name_byte, name_length};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::read) enum Dialect {
    /// Markdown outside of code.
    Prose,
    /// Shell, PowerShell and batch files.
    Shell,
    Yaml,
    /// JSON, with or without comments.
    Json,
    Terraform,
    Bicep,
    Python,
    /// Any other language, of which only common syntax is read.
    Plain,
}

/// The part of a text that is examined.
const EXAMINED: usize = 128 << 10;

/// Whether a text consists of prose and fenced code.
pub(in crate::read) fn is_markdown(text: &str) -> bool {
    // Fences in comments and documentation of a program do not make it prose.
    let starts = ["```", "~~~", "import ", "\"\"\"", "#!"];
    let mut lines = beginning(text).lines().map(str::trim_start);
    let first = lines.find_map(|line| starts.iter().find(|start| line.starts_with(**start)));
    matches!(first, Some(&"```" | &"~~~"))
}

/// The language of a text without fences.
pub(in crate::read) fn of(text: &str) -> Dialect {
    let text = beginning(text);
    let head = text.trim_start();
    if is_json(head) {
        return Dialect::Json;
    }
    let is_comment = |line: &str| line.starts_with('#') && !line.starts_with("#!") || line.starts_with("//");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !is_comment(line));
    let mut scores = Scores::default();
    for (index, line) in lines.enumerate() {
        scores.add_line(line, index == 0);
    }
    scores.best()
}

fn beginning(text: &str) -> &str {
    text.get(..text.floor_char_boundary(EXAMINED)).unwrap_or(text)
}

fn is_json(head: &str) -> bool {
    let mut chars = head.chars();
    match chars.next() {
        Some('{') => !head.starts_with("{{") && !head.starts_with("{%"),
        Some('[') => {
            let next = chars.find(|ch| !ch.is_whitespace());
            next.is_some_and(|ch| matches!(ch, '{' | '"' | '[' | ']') || ch.is_ascii_digit())
        }
        _ => false,
    }
}

#[derive(Default)]
struct Scores {
    shell: u32,
    yaml: u32,
    terraform: u32,
    bicep: u32,
    python: u32,
}

impl Scores {
    fn add_line(&mut self, line: &str, first: bool) {
        let keyword = line.split_whitespace().next().unwrap_or_default();
        let rest = line.get(keyword.len()..).unwrap_or_default().trim_start();
        if first && (line.starts_with("---") || line.starts_with("%YAML")) {
            self.yaml += 8;
        }
        if line.starts_with("#!") {
            let score = if line.contains("python") { &mut self.python } else { &mut self.shell };
            *score += 20;
        }
        match keyword {
            "resource" | "data" | "module" | "variable" | "provider" | "output" if rest.starts_with('"') => {
                self.terraform += 6;
            }
            "terraform" | "locals" if rest == "{" => self.terraform += 6,
            "resource" | "module" | "param" | "var" | "output" if rest.contains(['=', '\'']) => {
                self.bicep += 5;
            }
            "param" | "targetScope" => self.bicep += 5,
            "import" | "from" | "def" | "class" | "async" | "with" | "except" | "elif" => self.python += 3,
            "az" | "sudo" | "export" | "echo" | "fi" | "done" | "then" | "esac" | "local" | "$"
            | "docker" | "set" => {
                self.shell += 2;
            }
            _ => {}
        }
        if line.starts_with("@description(") || line.starts_with("@allowed(") || line.starts_with("@secure(")
        {
            self.bicep += 5;
        }
        if is_shell_assignment(line) {
            self.shell += 2;
        }
        if is_python_call(line) {
            self.python += 2;
        }
        if is_yaml_pair(line) {
            self.yaml += if first { 4 } else { 2 };
        }
    }

    fn best(&self) -> Dialect {
        let scores = [
            (self.bicep, Dialect::Bicep),
            (self.terraform, Dialect::Terraform),
            (self.python, Dialect::Python),
            (self.shell, Dialect::Shell),
            (self.yaml, Dialect::Yaml),
        ];
        let best = scores.iter().rev().max_by_key(|(score, _)| *score);
        best.filter(|(score, _)| *score > 0).map_or(Dialect::Plain, |(_, dialect)| *dialect)
    }
}

/// `NAME=value` without blanks.
fn is_shell_assignment(line: &str) -> bool {
    let name = name_length(line);
    name > 0
        && line.as_bytes().get(name) == Some(&b'=')
        && !line.get(name + 1..).unwrap_or_default().starts_with([' ', '='])
}

/// `name = module.Call(` or `Call(name=…`.
fn is_python_call(line: &str) -> bool {
    let Some((before, inside)) = line.split_once('(') else { return false };
    let callee = before.rsplit(['=', ' ']).next().unwrap_or_default();
    let is_name = |word: &str| !word.is_empty() && word.bytes().all(is_name_byte);
    let named =
        before.contains(" = ") || inside.split_once('=').is_some_and(|(name, _)| is_name(name.trim()));
    named && !callee.is_empty() && callee.bytes().all(|byte| is_name_byte(byte) || byte == b'.')
}

/// `key: value`, `key:` or `- key: value`.
fn is_yaml_pair(line: &str) -> bool {
    let line = line.trim_start_matches("- ");
    let Some((key, rest)) = line.split_once(':') else { return false };
    let key = key.trim_matches(['"', '\'']);
    let plain = |byte: u8| is_name_byte(byte) || b"-./$".contains(&byte);
    !key.is_empty()
        && key.bytes().all(plain)
        && (rest.is_empty() || rest.starts_with([' ', '\t']))
        && !rest.ends_with('{')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_detected_by_content() {
        let table = [
            ("#!/usr/bin/env bash\nset -e\naz vm create --size Standard_NC6\n", Dialect::Shell),
            ("az vm create --size Standard_NC6", Dialect::Shell),
            ("SIZE=Standard_NC6\naz vm create --size $SIZE\n", Dialect::Shell),
            ("name: x\nproperties:\n  containers: []\n", Dialect::Yaml),
            ("# a pool\n- name: x\n  size: y\n", Dialect::Yaml),
            ("{\n  // a comment\n  \"vmSize\": \"x\"\n}", Dialect::Json),
            ("resource \"azurerm_linux_virtual_machine\" \"gpu\" {\n  size = \"x\"\n}\n", Dialect::Terraform),
            ("param vmSize string = 'Standard_NC6'\n", Dialect::Bicep),
            (
                "resource vm 'Microsoft.Compute/virtualMachines@2024-07-01' = {\n  name: 'x'\n}\n",
                Dialect::Bicep,
            ),
            ("from azureml.core import Workspace\nws = Workspace.from_config()\n", Dialect::Python),
            ("config = AmlCompute.provisioning_configuration(vm_size=\"STANDARD_NC6\",\n", Dialect::Python),
            (
                "steps:\n- run: |\n    az vm create \\\n      --size Standard_NC6\n    az vm list\n",
                Dialect::Yaml,
            ),
            ("nothing much here\n", Dialect::Plain),
            ("", Dialect::Plain),
        ];
        for (text, dialect) in table {
            assert_eq!(of(text), dialect, "{text}");
        }
    }

    #[test]
    fn fences_make_notes_unless_a_program_quotes_them() {
        assert!(is_markdown("# Title\n\n```bash\naz vm create\n```\n"));
        assert!(!is_markdown("\"\"\"Says how:\n\n```\nx\n```\n\"\"\"\nimport os\n"));
    }
}
