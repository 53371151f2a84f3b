use std::borrow::Cow;

use serde::Deserialize;

use super::{Listed, lower_hex};
use crate::url::DisplaySafeUrl;

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow, default)]
    meta: Meta<'a>,
    #[serde(borrow)]
    files: Vec<File<'a>>,
}

#[derive(Default, Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "api-version")]
    api_version: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    filename: Cow<'a, str>,
    #[serde(borrow)]
    url: Cow<'a, str>,
    #[serde(borrow, default)]
    hashes: Hashes<'a>,
    size: Option<u64>,
}

#[derive(Default, Deserialize)]
struct Hashes<'a> {
    #[serde(borrow)]
    sha256: Option<Cow<'a, str>>,
}

/// Passes every file of a JSON page to `take`. Unknown fields are ignored, as the specification requires; a new major
/// version is an error.
pub(super) fn read(bytes: &[u8], page: &DisplaySafeUrl, take: &mut dyn FnMut(Listed)) -> Result<(), String> {
    let read: Page<'_> = serde_json::from_slice(bytes)
        .map_err(|error| format!("page is not the JSON of an index: {error}"))?;
    if let Some(version) = read.meta.api_version.filter(|version| !version.starts_with("1.")) {
        let version: String = version.chars().filter(char::is_ascii_graphic).take(20).collect();
        return Err(format!("page has version {version} of the simple API, only 1 is supported"));
    }
    for file in read.files {
        if let Some(url) = page.join(&file.url) {
            let sha256 = file.hashes.sha256.as_deref().and_then(lower_hex);
            take(Listed { file: file.filename.into_owned(), url, sha256, size: file.size });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(text: &str) -> Result<Vec<Listed>, String> {
        let page = DisplaySafeUrl::parse("https://index.example/simple/a/").unwrap();
        let mut all = Vec::new();
        read(text.as_bytes(), &page, &mut |listed| all.push(listed)).map(|()| all)
    }

    #[test]
    fn files_are_read_with_their_hashes_and_the_rest_is_ignored() {
        let hash = "AB".repeat(32);
        let all = read_all(&format!(
            r#"{{"meta":{{"api-version":"1.4","x":[]}},"name":"a","versions":["1"],"files":[
              {{"filename":"a\u002d1.whl","url":"../../p/a-1.whl","hashes":{{"sha256":"{hash}","md5":"1"}},"yanked":false,"size":3}},
              {{"filename":"a-2.whl","url":"https://files.example/a-2.whl","hashes":{{}}}},
              {{"filename":"a-3.whl","url":"data:x"}}]}}"#
        ))
        .unwrap();
        let [one, two] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!(
            (one.file.as_str(), one.sha256.as_deref()),
            ("a-1.whl", Some(hash.to_lowercase().as_str()))
        );
        assert_eq!(one.url.to_string(), "https://index.example/p/a-1.whl");
        assert_eq!((one.size, two.size), (Some(3), None));
        assert_eq!((two.file.as_str(), &two.sha256), ("a-2.whl", &None));
    }

    #[test]
    fn pages_other_than_version_1_are_rejected() {
        assert!(read_all("{").unwrap_err().contains("not the JSON of an index"));
        assert!(read_all(r#"{"files":{}}"#).is_err());
        let newer = read_all(r#"{"meta":{"api-version":"2.0"},"files":[]}"#).unwrap_err();
        assert_eq!(newer, "page has version 2.0 of the simple API, only 1 is supported");
        assert_eq!(read_all(r#"{"files":[]}"#), Ok(Vec::new()));
    }
}
