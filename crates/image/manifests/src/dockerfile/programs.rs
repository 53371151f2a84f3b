//! Reads commands that compile, fetch, unpack or run programs.

use std::collections::HashSet;
use std::sync::LazyLock;

use cudock_base::Span;
use cudock_dockerfile::Argument;

use super::run::{Call, MAX_DEPTH, ScriptReader};
use super::stage_fs::Searched;
use crate::compile::{self, Compiled, Targets};
use crate::files::join;
use crate::{Declared, excerpt};

/// Commands that neither add nor start a program that could use a GPU.
static HARMLESS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let names = "
        [ [[ ]] } add-apt-repository adduser addgroup apk apt-cache apt-key apt-mark awk basename break case cat
        chgrp chmod chown cp cut date deluser dirname done dpkg dpkg-reconfigure du echo ls esac exit export false
        fc-cache fi find for git-lfs gpg grep groupadd gzip head hash huggingface-cli id install ldconfig ln
        locale-gen mkdir mktemp mv nproc nvidia-smi popd printf pwd pyenv readlink rm rmdir sed set shopt sleep sort
        ssh-keygen strip sync tail tee test touch tr trap true uname unset update-alternatives
        update-ca-certificates update-locale useradd usermod which xargs";
    names.split_ascii_whitespace().collect()
});

/// URLs of installers and of data whose programs do not use a GPU.
const KNOWN_DOWNLOADS: [&str; 11] = [
    "astral.sh/uv",
    "bootstrap.pypa.io",
    "cuda-keyring",
    "developer.download.nvidia.com/compute/cuda/repos",
    "huggingface.co",
    "install.python-poetry.org",
    "nvidia.github.io/libnvidia-container",
    "micro.mamba.pm",
    "Miniforge3",
    "Miniconda3",
    "deb.nodesource.com/gpgkey",
];

pub(super) fn is_script(name: &str) -> bool {
    [".sh", ".bash"].iter().any(|ending| name.ends_with(ending))
}

impl ScriptReader<'_, '_> {
    /// Reads a command that is not an installer.
    pub(super) fn other(&mut self, program: &str, first: &Argument<'_>, call: Call<'_>) {
        match program {
            "nvcc" => self.nvcc(call),
            "cmake" => self.cmake(call),
            "make" | "gmake" | "ninja" => self.make(program, call),
            "curl" | "wget" | "aria2c" => self.download(program, call),
            "git" => {
                if let Some(("clone" | "submodule" | "pull" | "fetch", call)) = call.subcommand() {
                    let url = call.args.iter().find(|arg| arg.text.contains([':', '/']));
                    let url = excerpt(url.map_or("git", |arg| &*arg.text));
                    self.declared.note(call.span, format!("content fetched from `{url}` is unknown"));
                }
            }
            "source" | "." => {
                let known = ["activate", "profile", "bashrc", "conda.sh", ".env", "setup.bash", "os-release"];
                if let Some(file) = call.args.first()
                    && !known.iter().any(|arg| file.text.contains(arg))
                {
                    self.script_file(&file.text, call);
                }
            }
            "tar" | "unzip" | "bsdtar" | "7z" | "gunzip" => {
                self.declared.note(call.span, format!("content unpacked by `{program}` is unknown"));
            }
            _ if is_script(program) || first.text.starts_with("./") => self.script_file(&first.text, call),
            _ if HARMLESS.contains(program) || program.is_empty() => {}
            _ => self.unknown(&first.text, call.span),
        }
    }

    /// Reads a script of the build context.
    pub(super) fn script_file(&mut self, path: &str, call: Call<'_>) {
        let installer = ["miniconda", "miniforge", "mambaforge"];
        if installer.iter().any(|name| path.to_ascii_lowercase().contains(name)) {
            return;
        }
        let is_shell = |name: &str, text: &str| {
            is_script(name) || text.starts_with("#!/bin/") || text.starts_with("#!/usr/bin/env bash")
        };
        match self.fs.text(&self.cwd, path).filter(|(name, text)| is_shell(name, text)) {
            Some((_, text)) if call.depth < MAX_DEPTH => {
                self.script_at(&text, Some(call.span), call.depth + 1);
            }
            _ => {
                self.fs.changed_by.get_or_insert_with(|| path.to_owned());
                self.declared.note(call.span, format!("cannot read script `{}`", excerpt(path)));
            }
        }
    }

    fn compiled(&mut self, name: &str, output: Option<String>, targets: Targets, span: Span) {
        let (name, image) = (name.to_owned(), self.fs.image.clone());
        let compiled = Compiled { name, output, is_extension: false, targets, image, file: None, span };
        self.declared.compiled.push(compiled);
    }

    fn nvcc(&mut self, call: Call<'_>) {
        let arguments = call.args;
        if arguments.iter().any(|arg| matches!(&*arg.text, "--version" | "-V" | "--help")) {
            return;
        }
        let open = arguments
            .iter()
            .find(|arg| arg.is_unresolved && ["arch", "code"].iter().any(|part| arg.text.contains(part)));
        let targets = match open {
            Some(arg) => Targets::Unknown(format!("`{}` cannot be resolved", excerpt(&arg.text))),
            None => compile::of_nvcc(arguments.iter().map(|arg| &*arg.text)),
        };
        let output = call.value_of(&["-o", "--output-file"]).unwrap_or("a.out");
        self.compiled(output, Some(join(&self.cwd, output)), targets, call.span);
    }

    fn cmake(&mut self, call: Call<'_>) {
        let arguments = call.args;
        let is_step = ["--build", "--install", "-E", "--version", "-P"];
        if arguments.iter().any(|arg| is_step.contains(&&*arg.text)) {
            return;
        }
        let mut asked = None;
        for (index, arg) in arguments.iter().enumerate() {
            let definition = match arg.text.strip_prefix("-D") {
                Some("") => arguments.get(index + 1).map(|next| (&*next.text, next.is_unresolved)),
                Some(definition) => Some((definition, arg.is_unresolved)),
                None => None,
            };
            let value = definition.and_then(|(definition, is_unresolved)| {
                let (name, value) = definition.split_once('=')?;
                (name.split(':').next() == Some("CMAKE_CUDA_ARCHITECTURES")).then_some((value, is_unresolved))
            });
            asked = match value {
                Some((value, true)) => {
                    Some(Targets::Unknown(format!("`{}` cannot be resolved", excerpt(value))))
                }
                Some((value, false)) => Some(compile::of_cmake(value)),
                None => asked,
            };
        }
        let asked = asked.or_else(|| self.value(call.set, "CUDAARCHS").map(|list| compile::of_cmake(&list)));
        let valued = |index: &usize| {
            index.checked_sub(1).and_then(|before| arguments.get(before)).is_some_and(|before| {
                ["-B", "-G", "-D", "-C", "-T", "-A", "--preset", "--toolchain"].contains(&&*before.text)
            })
        };
        let positional = || {
            let mut indexed = arguments.iter().enumerate();
            let found = indexed.find(|(index, arg)| !arg.text.starts_with('-') && !valued(index));
            found.map(|(_, arg)| &*arg.text)
        };
        let source = call.value_of(&["-S"]).or_else(positional).unwrap_or(".");
        let lists = self.fs.text(&join(&self.cwd, source), "CMakeLists.txt");
        let own = lists.and_then(|(_, text)| compile::of_build_file(&text)).map(|own| self.of_file(own));
        match asked.or(own) {
            Some(targets) => self.compiled("program that cmake builds", None, targets, call.span),
            None => self.declared.note(call.span, "program built by `cmake` is unknown"),
        }
    }

    /// The architectures listed in a build file; unknown if an earlier command may have changed the file.
    fn of_file(&self, listed: Targets) -> Targets {
        match &self.fs.changed_by {
            Some(command) => {
                Targets::Unknown(format!("`{}` may have changed the architectures", excerpt(command)))
            }
            None => listed,
        }
    }

    /// Whether cmake was run before. Many commands call this, so each call checks only the new entries.
    fn is_configured(&mut self) -> bool {
        let Declared { compiled, notes, .. } = &*self.declared;
        let Searched { compiled: old_compiled, notes: old_notes, is_found } = &mut self.fs.cmake;
        *is_found = *is_found
            || compiled.iter().skip(*old_compiled).any(|compiled| compiled.name.contains("cmake"))
            || notes.iter().skip(*old_notes).any(|note| note.text.contains("`cmake`"));
        (*old_compiled, *old_notes) = (compiled.len(), notes.len());
        *is_found
    }

    fn make(&mut self, program: &str, call: Call<'_>) {
        // The program that cmake configured is already recorded.
        if self.is_configured() {
            return;
        }
        let base = join(&self.cwd, call.value_of(&["-C"]).unwrap_or("."));
        let file = ["Makefile", "makefile", "GNUmakefile"].iter().find_map(|name| self.fs.text(&base, name));
        let sets_variables = call.args.iter().any(|arg| arg.text.contains('=') && !arg.text.starts_with('-'));
        let span = call.span;
        // nvcc appends this variable to its arguments, whatever the makefile passes.
        let appended = self.value(call.set, "NVCC_APPEND_FLAGS");
        let targets = file.and_then(|(_, text)| compile::of_build_file(&text)).filter(|_| program != "ninja");
        let targets = targets.map(|targets| self.of_file(targets)).map(|mut targets| {
            targets.add(compile::of_nvcc(appended.as_deref().unwrap_or_default().split_whitespace()));
            targets
        });
        match targets {
            Some(Targets::Unknown(_)) | None => {
                self.declared.note(span, format!("program built by `{program}` is unknown"));
            }
            Some(_) if sets_variables => {
                self.declared.note(span, format!("variables passed to `{program}` may change what is built"));
            }
            Some(targets) => self.compiled("program that make builds", None, targets, span),
        }
    }

    fn download(&mut self, program: &str, call: Call<'_>) {
        let keys = [".gpg", ".asc", ".key", ".pub", ".list", "gpgkey"];
        let is_harmless = |arg: &Argument<'_>| {
            KNOWN_DOWNLOADS.iter().any(|known| arg.text.contains(known))
                || keys.iter().any(|ending| arg.text.ends_with(ending))
        };
        if call.args.iter().any(is_harmless) {
            return;
        }
        let url = call.args.iter().find(|arg| arg.text.contains("://"));
        let url = excerpt(url.map_or(program, |arg| &*arg.text));
        self.declared.note(call.span, format!("content downloaded from `{url}` is unknown"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_installer_or_compiler_counts_as_harmless() {
        for program in
            ["pip", "uv", "poetry", "conda", "nvcc", "cmake", "make", "git", "curl", "python", "cargo", "npm"]
        {
            assert!(!HARMLESS.contains(program), "{program}");
        }
    }
}
