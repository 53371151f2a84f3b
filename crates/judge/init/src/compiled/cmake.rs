//! Reads what `CMakeLists.txt` files build, install and link. Generated names and conditions are not evaluated.

use cudock_manifests::Files;

use super::app::BuildTargets;

/// Packages that NVIDIA's devel images have, or that need no package.
const PRESENT: [&str; 5] = ["CUDA", "CUDAToolkit", "Threads", "OpenMP", "CUDNN"];

pub(super) fn read_all(files: &dyn Files) -> BuildTargets {
    let mut targets = BuildTargets::default();
    let is_list = |path: &String| path.rsplit('/').next() == Some("CMakeLists.txt");
    for text in files.below("").iter().filter(|path| is_list(path)).filter_map(|path| files.text(path)) {
        read(&text, &mut targets);
    }
    targets
}

fn read(text: &str, targets: &mut BuildTargets) {
    for (command, args) in commands(text) {
        let first = args.first().cloned().unwrap_or_default();
        let has = |wanted: &str| args.iter().any(|arg| arg == wanted);
        match command.as_str() {
            "project" => {
                targets.project.get_or_insert(first);
            }
            "add_executable" | "cuda_add_executable" if !has("IMPORTED") && !has("ALIAS") => {
                targets.executables.push(first);
            }
            "add_library" | "cuda_add_library" if has("SHARED") || has("MODULE") => {
                targets.libraries.push(first);
            }
            "target_link_libraries" | "link_libraries" => {
                targets.links.extend(args.iter().map(|arg| arg.to_ascii_lowercase()));
            }
            "install" if first == "TARGETS" => targets.installs = true,
            "find_package" if first == "OpenMP" => targets.openmp = true,
            "find_package" if !PRESENT.contains(&first.as_str()) => targets.packages.push(first),
            _ => {}
        }
    }
    // `project(app)` and `add_executable(${PROJECT_NAME} …)` are common.
    if let Some(project) = &targets.project {
        for name in targets.executables.iter_mut().chain(&mut targets.libraries) {
            *name = name.replace("${PROJECT_NAME}", project).replace("${CMAKE_PROJECT_NAME}", project);
        }
    }
}

/// The commands of a file: their names in lower case, and their arguments without quotes.
fn commands(text: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    // The name of the open command, and its arguments so far.
    let (mut name, mut open): (String, Option<Vec<String>>) = (String::new(), None);
    let mut arg = String::new();
    let (mut quoted, mut comment, mut depth) = (false, false, 0_usize);
    for character in text.chars() {
        if comment {
            comment = character != '\n';
            continue;
        }
        let ends = |arg: &mut String, open: &mut Option<Vec<String>>| match open {
            Some(args) if !arg.is_empty() => args.push(std::mem::take(arg)),
            Some(_) => {}
            None => arg.clear(),
        };
        match character {
            '"' => quoted = !quoted,
            _ if quoted => arg.push(character),
            '#' => comment = true,
            '(' if open.is_none() => {
                (name, open) = (std::mem::take(&mut arg).to_ascii_lowercase(), Some(Vec::new()));
            }
            '(' => depth += 1,
            ')' if depth > 0 => depth -= 1,
            ')' => {
                ends(&mut arg, &mut open);
                found.extend(open.take().map(|args| (std::mem::take(&mut name), args)));
            }
            // A name may be followed by spaces before its parenthesis.
            ' ' | '\t' if open.is_none() => {}
            _ if character.is_whitespace() => ends(&mut arg, &mut open),
            _ => arg.push(character),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_libraries_and_links_are_read() {
        let text = r#"
            cmake_minimum_required(VERSION 3.24) # (a comment)
            project (app LANGUAGES CXX CUDA)
            find_package(CUDAToolkit REQUIRED)
            find_package(OpenCV)
            add_library(kernels SHARED "kernels file.cu")
            add_library(util STATIC util.cpp)
            add_executable(${PROJECT_NAME} main.cu)
            target_link_libraries(app PRIVATE kernels CUDA::cuBLAS "$<$<CONFIG:Debug>:CUDA::cufft>")
            install(TARGETS app kernels)
        "#;
        let mut targets = BuildTargets::default();
        read(text, &mut targets);
        assert_eq!(targets.executables, ["app"]);
        assert_eq!(targets.libraries, ["kernels"]);
        assert_eq!(targets.packages, ["OpenCV"]);
        assert!(targets.installs && !targets.openmp);
        assert!(targets.links.iter().any(|link| link == "cuda::cublas"), "{:?}", targets.links);
    }

    #[test]
    fn broken_text_ends_without_a_command() {
        for text in ["", "(", ")", "add_executable(a", "\"(", "#", "x((((", "a)b(c"] {
            assert_eq!(commands(text).len(), 0, "{text}");
        }
    }
}
