//! Parses build tags: the `cu121` in local versions, index URLs and conda's build strings.

use super::is_listed;

/// Packages of which indexes such as `…/whl/cu121` have their own builds; all others there are the ones of PyPI.
const BUILT_PER_INDEX: &str = "
    auto-gptq autoawq deepspeed detectron2 dgl fbgemm-gpu fbgemm-gpu-genai flash-attn flashinfer-python kaolin
    llama-cpp-python mmcv mmcv-full natten onnxruntime-gpu onnxruntime-training paddlepaddle-gpu pyg-lib
    pytorch-triton pytorch3d torch torch-cluster torch-scatter torch-sparse torch-spline-conv torch-tensorrt
    torchao torchaudio torchcodec torchdata torchrec torchtext torchvision vllm xformers";

/// Whether the index determines the build of a package.
pub(super) fn is_built_per_index(name: &str) -> bool {
    is_listed(BUILT_PER_INDEX, name)
}

/// The tag at the start of a text: `cu121` of `cu121.full`, `rocm6.0`, `cpu` of `cpu-cxx11-abi`.
pub(super) fn at_start(text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase();
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    if let Some(rest) = text.strip_prefix("cu") {
        let count = digits(rest);
        return (2..=4).contains(&count).then(|| rest.get(..count).map(|rest| format!("cu{rest}"))).flatten();
    }
    if let Some(rest) = text.strip_prefix("rocm") {
        let end = rest.find(|found: char| !found.is_ascii_digit() && found != '.').unwrap_or(rest.len());
        let version = rest.get(..end)?.trim_end_matches('.');
        return version.starts_with(|first: char| first.is_ascii_digit()).then(|| format!("rocm{version}"));
    }
    ["cpu", "xpu"].into_iter().find(|tag| starts_with_word(&text, tag)).map(str::to_owned)
}

fn starts_with_word(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_alphanumeric()))
}

/// The tag in the URL of an index or page of links: `…/whl/cu121`, `…/whl/torch-2.3.0+cu121.html`.
pub(super) fn from_url(url: &str) -> Option<String> {
    let url = url.split_once("://").map_or(url, |(_, rest)| rest);
    url.split(['/', '?', '#', '&', '+']).skip(1).filter_map(whole_word).last()
}

fn whole_word(word: &str) -> Option<String> {
    let word = word.strip_suffix(".html").unwrap_or(word);
    let tag = at_start(word)?;
    (word.len() == tag.len() || tag == "cpu").then_some(tag)
}

/// The tag in conda's build string: `py3.11_cuda12.1_cudnn8.9.2_0` is `cu121`, `cpu_py311h…` is `cpu`.
pub(super) fn of_conda_build(build: &str) -> Option<String> {
    let build = build.to_ascii_lowercase();
    if let Some((_, rest)) = build.split_once("cuda") {
        let version: String = rest.chars().take_while(|next| next.is_ascii_digit() || *next == '.').collect();
        let version: String = version.split('.').take(2).collect();
        return Some(if version.len() >= 2 { format!("cu{version}") } else { "cuda".to_owned() });
    }
    let has = |wanted: &str| build.split(['_', '*', '-']).any(|part| part == wanted);
    if has("cpu") {
        return Some("cpu".to_owned());
    }
    if let Some((_, rest)) = build.split_once("rocm") {
        return at_start(&format!("rocm{rest}")).or_else(|| Some("rocm".to_owned()));
    }
    has("gpu").then(|| "cuda".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_from_urls() {
        let cases = [
            ("https://download.pytorch.org/whl/cu121", Some("cu121")),
            ("https://download.pytorch.org/whl/nightly/cu128/", Some("cu128")),
            ("https://download.pytorch.org/whl/cpu", Some("cpu")),
            ("https://download.pytorch.org/whl/cpu-cxx11-abi", Some("cpu")),
            ("https://download.pytorch.org/whl/rocm6.0", Some("rocm6.0")),
            ("https://data.pyg.org/whl/torch-2.3.0+cu121.html", Some("cu121")),
            ("https://flashinfer.ai/whl/cu124/torch2.4/", Some("cu124")),
            ("https://download.pytorch.org/whl/torch_stable.html", None),
            ("https://cu121/simple", None),
            ("https://example.org/cucumber/cu1/cu121x", None),
        ];
        for (url, tag) in cases {
            assert_eq!(from_url(url).as_deref(), tag, "{url}");
        }
    }

    #[test]
    fn tags_are_read_from_conda_builds() {
        let cases = [
            ("py3.11_cuda12.1_cudnn8.9.2_0", Some("cu121")),
            ("cuda120_py310h4c0b1b4_301", Some("cu120")),
            ("cuda112py39h3ad47f5_0", Some("cu112")),
            ("py3.11_cpu_0", Some("cpu")),
            ("cpu_py311h1234567_0", Some("cpu")),
            ("*cuda*", Some("cuda")),
            ("gpu_py38hb782248_0", Some("cuda")),
            ("py311h64a7726_0", None),
            ("mkl_py311", None),
        ];
        for (build, tag) in cases {
            assert_eq!(of_conda_build(build).as_deref(), tag, "{build}");
        }
    }

    #[test]
    fn tags_are_read_from_local_versions() {
        let cases = [
            ("cu121", Some("cu121")),
            ("cu122torch2.3cxx11abifalse", Some("cu122")),
            ("rocm6.0", Some("rocm6.0")),
            ("cpu", Some("cpu")),
            ("40ec155e58.nv24.3", None),
            ("cpux", None),
            ("cu", None),
        ];
        for (local, tag) in cases {
            assert_eq!(at_start(local).as_deref(), tag, "{local}");
        }
    }
}
