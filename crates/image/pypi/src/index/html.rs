use super::{Listed, file_of, lower_hex};
use crate::url::DisplaySafeUrl;

/// Passes the target of every link of an HTML page to `take`. Only `<a href>` and `<base href>` are read; invalid HTML is
/// skipped, as in browsers.
pub(super) fn read(text: &str, page: &DisplaySafeUrl, take: &mut dyn FnMut(Listed)) {
    let mut base = page.clone();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('<') {
        if let Some(comment) = after.strip_prefix("!--") {
            rest = comment.split_once("-->").map_or("", |(_, rest)| rest);
            continue;
        }
        let (name, attributes) =
            after.split_at(after.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(after.len()));
        let (href, end) = href(attributes);
        rest = end;
        let Some(href) = href else { continue };
        if name.eq_ignore_ascii_case("base") {
            base = base.join(&href).unwrap_or(base);
        } else if name.eq_ignore_ascii_case("a")
            && let (Some(file), Some(url)) = (file_of(&href), base.join(&href))
        {
            take(Listed { file, url, sha256: sha256_of(&href), size: None });
        }
    }
}

/// The value of `href` among a tag's attributes, and the text after the tag.
fn href(text: &str) -> (Option<String>, &str) {
    let mut found = None;
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        let end = rest
            .find(|c: char| c.is_ascii_whitespace() || matches!(c, '=' | '>' | '/'))
            .unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let after = after.trim_start();
        let Some(value) = after.strip_prefix('=').map(str::trim_start) else {
            match after.strip_prefix('>') {
                Some(behind) => return (found, behind),
                // Neither a name nor anything that could follow one: the text is truncated.
                None if after.is_empty() || name.is_empty() => return (found, ""),
                None => {
                    rest = after;
                    continue;
                }
            }
        };
        let (value, behind) = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let inner = value.get(1..).unwrap_or_default();
                inner.split_once(quote).unwrap_or((inner, ""))
            }
            _ => value
                .split_at(value.find(|c: char| c.is_ascii_whitespace() || c == '>').unwrap_or(value.len())),
        };
        if found.is_none() && name.eq_ignore_ascii_case("href") {
            found = Some(unescaped(value));
        }
        rest = behind;
    }
}

/// The hash in a link's fragment: `#sha256=…`.
fn sha256_of(href: &str) -> Option<String> {
    let (_, fragment) = href.split_once('#')?;
    fragment.split('&').find_map(|part| lower_hex(part.strip_prefix("sha256=")?))
}

/// Replaces the character references that occur in URLs.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        // Known references are not longer.
        let end = after.bytes().take(10).position(|byte| byte == b';');
        let name = end.and_then(|end| after.get(..end));
        if let Some((name, c)) = name.and_then(|name| Some((name, character(name)?))) {
            out.push(c);
            rest = after.get(name.len() + 1..).unwrap_or_default();
        } else {
            out.push('&');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

fn character(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn links(text: &str) -> Vec<(String, String, bool)> {
        let page = DisplaySafeUrl::parse("https://index.example/simple/a/").unwrap();
        let mut all = Vec::new();
        read(text, &page, &mut |listed| {
            all.push((listed.file, listed.url.to_string(), listed.sha256.is_some()));
        });
        all
    }

    #[test]
    fn links_are_read_in_all_spellings() {
        let hash = "0123456789abcdef".repeat(4);
        for (text, file, path, hashed) in [
            (
                "<a href=\"a.whl#sha256=HASH\" data-requires-python=\"&gt;=3.11\">a</a>",
                "a.whl",
                "simple/a/a.whl",
                true,
            ),
            ("<A class='x' HREF='../../p/a.whl#egg=a&amp;sha256=HASH'>", "a.whl", "p/a.whl", true),
            ("<a\n  data-x\n  href=/p/a%2B1.whl>", "a+1.whl", "p/a%2B1.whl", false),
            ("<a/href=\"a.whl?x=1&#38;y=2\"/>", "a.whl", "simple/a/a.whl", false),
            ("<a title='a > b' href = \"a.whl#md5=1\">", "a.whl", "simple/a/a.whl", false),
            ("<head><base href='/root/'></head><a href='a.whl'>", "a.whl", "root/a.whl", false),
            ("<!-- <a href='no.whl'> --><a href='a.whl'>", "a.whl", "simple/a/a.whl", false),
        ] {
            let url = format!("https://index.example/{path}");
            assert_eq!(links(&text.replace("HASH", &hash)), [(file.to_owned(), url, hashed)], "{text}");
        }
    }

    #[test]
    fn what_is_not_a_link_to_a_file_is_skipped() {
        for text in [
            "",
            "<a",
            "<a href",
            "<a href=",
            "<a href=\"",
            "<abbr href='a.whl'>",
            "<a name='a.whl'>",
            "<a href='/'>",
            "<a href='javascript:a.whl'>",
            "<!-- <a href='a.whl'>",
            "a < b",
        ] {
            assert_eq!(links(text), [], "{text}");
        }
    }

    #[test]
    fn an_invalid_reference_is_kept() {
        assert_eq!(unescaped("a&b&nope;&#xZZ;&#1114112;&amp;é&ä"), "a&b&nope;&#xZZ;&#1114112;&é&ä");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[<>a=\"'/ !&;#xé-]{0,80}|(<a href=|\"|&#|;|>|é|base ){0,30}") {
            links(&text);
        }
    }
}
