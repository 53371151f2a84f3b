//! Reads what a makefile builds and links. Only plain variables and `$@` are expanded.

use std::collections::BTreeMap;

use super::app::BuildTargets;

pub(super) fn read(text: &str) -> BuildTargets {
    let variables = variables(text);
    let mut targets = BuildTargets::default();
    let mut target = String::new();
    for line in lines(text) {
        if let Some(recipe) = line.strip_prefix('\t') {
            let recipe = expand(recipe, &variables);
            let mut words = recipe.split_whitespace();
            while let Some(word) = words.next() {
                let output = (word == "-o").then(|| words.next()).flatten();
                let Some(output) = output.filter(|output| output.len() <= LONGEST_NAME) else { continue };
                let output = output.replace("$@", &target);
                let kind = match output.rsplit_once('.').map(|(_, extension)| extension) {
                    Some("o" | "obj" | "a" | "d" | "ptx" | "cubin") => continue,
                    Some("so") => &mut targets.libraries,
                    _ => &mut targets.executables,
                };
                if !kind.contains(&output) {
                    kind.push(output);
                }
            }
            targets.openmp |= recipe.contains("-fopenmp");
            targets.links.extend(link_words(&recipe));
        } else if let Some((name, _)) = line.split_once(':').filter(|(name, _)| !name.contains('=')) {
            let name = expand(name, &variables);
            name.split_whitespace().next().unwrap_or_default().clone_into(&mut target);
        }
    }
    targets.links.extend(variables.values().flat_map(|value| link_words(value)));
    targets
}

fn link_words(text: &str) -> impl Iterator<Item = String> {
    text.split_whitespace().filter(|word| word.starts_with("-l")).map(str::to_ascii_lowercase)
}

/// The argument of make that sets the variable in `-arch=$(ARCH)` or `-arch=sm_$(SM)`.
pub(super) fn architecture_variable(text: &str, number: u16) -> Option<String> {
    let forms = [("-arch=$(", "sm_"), ("-arch=sm_$(", ""), ("code=sm_$(", "")];
    forms.into_iter().find_map(|(form, prefix)| {
        let (_, rest) = text.split_once(form)?;
        let (name, _) = rest.split_once(')')?;
        let is_name =
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_name.then(|| format!("{name}={prefix}{number}"))
    })
}

/// Lines without comments, with continued lines joined.
fn lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for part in text.lines() {
        let part = part.split('#').next().unwrap_or_default();
        if let Some(part) = part.strip_suffix('\\') {
            line.push_str(part);
        } else {
            line.push_str(part);
            lines.push(std::mem::take(&mut line));
        }
    }
    lines.push(line);
    lines
}

fn variables(text: &str) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    for line in lines(text).iter().filter(|line| !line.starts_with('\t')) {
        let Some((name, value)) = line.split_once('=') else { continue };
        let name = name.trim_end_matches([':', '?', '+', ' ']).trim();
        if !name.contains([' ', ':']) {
            // Values that grow by each other must not grow without limit.
            let value = expand(value.trim(), &variables);
            let known: &mut String = variables.entry(name.to_owned()).or_default();
            if known.len() + value.len() < MOST_BYTES {
                known.push(' ');
                known.push_str(&value);
            }
        }
    }
    variables
}

/// The limit of an expanded line, in bytes.
const MOST_BYTES: usize = 4096;
/// The limit of a variable's or a file's name, in bytes.
const LONGEST_NAME: usize = 128;

/// Replaces `$(NAME)` and `${NAME}` by known values.
fn expand(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        let close = if after.starts_with('(') { b')' } else { b'}' };
        let end = after.bytes().take(LONGEST_NAME).position(|byte| byte == close);
        let name = end.and_then(|end| Some((after.get(1..end)?, after.get(end + 1..)?)));
        match name.and_then(|(name, rest)| Some((variables.get(name)?, rest))) {
            Some((value, behind)) if expanded.len() + value.len() < MOST_BYTES => {
                expanded.push_str(value.trim());
                rest = behind;
            }
            _ => {
                expanded.push('$');
                rest = after;
            }
        }
    }
    expanded.push_str(rest);
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_libraries_and_links_are_read() {
        let text = "NVCC ?= nvcc\nTARGET := bin/app # the program\nLIBS = -lcublas\n\nall: $(TARGET)\n\n\
                    $(TARGET): main.o \\\n  libkernels.so\n\t$(NVCC) -o $@ main.o $(LIBS) -L. -lkernels\n\n\
                    libkernels.so: kernels.cu\n\t$(NVCC) -shared -o $@ kernels.cu\n\n%.o: %.cu\n\t$(NVCC) -c -o $@ $<\n";
        let targets = read(text);
        assert_eq!(targets.executables, ["bin/app"]);
        assert_eq!(targets.libraries, ["libkernels.so"]);
        assert!(targets.links.iter().any(|link| link == "-lcublas"), "{:?}", targets.links);
    }

    #[test]
    fn variables_of_architectures_become_arguments() {
        let cases = [
            ("app:\n\tnvcc -arch=$(ARCH) a.cu", Some("ARCH=sm_75")),
            ("app:\n\tnvcc -arch=sm_$(SM) a.cu", Some("SM=75")),
            ("app:\n\tnvcc -gencode arch=compute_$(SM),code=sm_$(SM) a.cu", Some("SM=75")),
            ("app:\n\tnvcc -arch=$(shell detect) a.cu", None),
            ("app:\n\tnvcc a.cu", None),
        ];
        for (text, expected) in cases {
            assert_eq!(architecture_variable(text, 75).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn variables_that_grow_by_each_other_stay_small() {
        let text: String = std::iter::once("A = xxxxxxxx\n".to_owned())
            .chain((0..64).map(|_| "A = $(A)$(A)$(A)$(A)\n".to_owned()))
            .collect();
        assert!(variables(&text).values().all(|value| value.len() <= MOST_BYTES));
    }
}
