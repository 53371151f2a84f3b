//! Reads pages of package indexes: the simple repository API, as JSON (PEP 691) and as HTML (PEP 503).

mod html;
mod json;

use cudock_base::text::percent;

use crate::url::DisplaySafeUrl;

/// The supported media types, the best first.
pub(crate) const ACCEPT: &str =
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";

/// The size limit for a page. The largest of the public index, with thousands of files, have a tenth of it.
pub(crate) const MAX_PAGE: u64 = 64 << 20;

/// A file on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) file: String,
    pub(crate) url: DisplaySafeUrl,
    /// Its SHA-256 in lower-case hexadecimal, if the page has it.
    pub(crate) sha256: Option<String>,
    /// Its size, which only JSON pages have.
    pub(crate) size: Option<u64>,
}

/// The file of this name among those of a page: the first that lists this hash, else the first of the name.
pub(crate) fn pick(listed: Vec<Listed>, file: &str, sha256: &str) -> Option<Listed> {
    let fits = |listed: &Listed| listed.sha256.as_deref() == Some(sha256);
    let mut named: Vec<Listed> = listed.into_iter().filter(|listed| listed.file == file).collect();
    let best = named.iter().position(fits).unwrap_or(0);
    (best < named.len()).then(|| named.swap_remove(best))
}

/// Passes every file on a page to `take`. The error says why the bytes are not a page.
pub(crate) fn read(
    bytes: &[u8],
    media_type: Option<&str>,
    page: &DisplaySafeUrl,
    take: &mut dyn FnMut(Listed),
) -> Result<(), String> {
    if is_json(bytes, media_type) {
        json::read(bytes, page, take)
    } else {
        html::read(&String::from_utf8_lossy(bytes), page, take);
        Ok(())
    }
}

/// Whether it is JSON, by the media type, or else by the first character.
fn is_json(bytes: &[u8], media_type: Option<&str>) -> bool {
    let bare =
        media_type.and_then(|text| text.split(';').next()).unwrap_or_default().trim().to_ascii_lowercase();
    match bare.as_str() {
        "application/json" => true,
        other if other.ends_with("+json") => true,
        other if other.ends_with("html") => false,
        _ => bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{'),
    }
}

fn file_of(link: &str) -> Option<String> {
    let path = link.split(['#', '?']).next()?;
    percent::decode(path.rsplit('/').next()?).filter(|name| !name.is_empty())
}

fn lower_hex(text: &str) -> Option<String> {
    let is_hash = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "1f3dea47f2f0e5117c2404cea7d21fd253ae7836a3bf167a501cdfbb2600d536";

    fn page() -> DisplaySafeUrl {
        DisplaySafeUrl::parse("https://index.example/simple/a/").unwrap()
    }

    #[test]
    fn a_page_is_recognized_by_media_type_or_first_character() {
        for (media_type, bytes, json) in [
            (Some("application/vnd.pypi.simple.v1+json"), "", true),
            (Some("application/json; charset=utf-8"), "", true),
            (Some("text/html; charset=utf-8"), "{", false),
            (Some("application/vnd.pypi.simple.v1+html"), "{", false),
            (Some("application/octet-stream"), " {", true),
            (None, "<html>", false),
            (None, "{}", true),
            (None, "", false),
        ] {
            assert_eq!(is_json(bytes.as_bytes(), media_type), json, "{media_type:?} {bytes}");
        }
    }

    #[test]
    fn of_two_files_with_one_name_the_one_with_the_hash_is_used() {
        let other = "0".repeat(64);
        let html = format!("<a href='one/a.whl#sha256={other}'>a</a><a href='two/a.whl#sha256={HASH}'>a</a>");
        let find = |file: &str, sha256: &str| {
            let mut listed = Vec::new();
            read(html.as_bytes(), None, &page(), &mut |file| listed.push(file)).unwrap();
            pick(listed, file, sha256)
        };
        let found = find("a.whl", HASH).unwrap();
        assert_eq!(found.url.to_string(), "https://index.example/simple/a/two/a.whl");
        let found = find("a.whl", &"1".repeat(64)).unwrap();
        assert_eq!(found.sha256, Some(other));
        assert_eq!(find("b.whl", HASH), None);
    }
}
