//! The status page, and a form to try a model.
//!
//! All files are in the binary and nothing is loaded from elsewhere, so the page works without a network. Script and
//! style are separate files, so that [`SECURITY_POLICY`] can forbid everything inline.
//!
//! The page polls `GET /status` every second ([`status`] documents the fields) and tries models
//! with `POST /predict/{model}/{version}`. If either returns 401, the page prompts for an API key
//! and sends it as `Authorization: Bearer`; so the page itself needs no key.

pub(crate) mod status;

/// The `Content-Security-Policy` that the page is served with.
pub(crate) const SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// Path, content type and bytes of each file of the page.
const ASSETS: [(&str, &str, &str); 10] = [
    ("/", HTML, include_str!("index.html")),
    ("/assets/style.css", CSS, include_str!("style.css")),
    ("/assets/icon.svg", SVG, include_str!("icon.svg")),
    ("/assets/script.js", SCRIPT, include_str!("script.js")),
    ("/assets/figures.js", SCRIPT, include_str!("figures.js")),
    ("/assets/charts.js", SCRIPT, include_str!("charts.js")),
    ("/assets/signature.js", SCRIPT, include_str!("signature.js")),
    ("/assets/drawing.js", SCRIPT, include_str!("drawing.js")),
    ("/assets/pad.js", SCRIPT, include_str!("pad.js")),
    ("/assets/attempt.js", SCRIPT, include_str!("attempt.js")),
];

/// Content type and bytes of a file of the page, by request path without query.
pub(crate) fn asset(path: &str) -> Option<(&'static str, &'static [u8])> {
    ASSETS.iter().find(|(name, ..)| *name == path).map(|(_, kind, text)| (*kind, text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The quoted text after each occurrence of `before`.
    fn quoted_after(text: &str, before: &str) -> Vec<String> {
        text.split(before).skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
    }

    #[test]
    fn every_file_that_the_page_references_exists() {
        let (_, _, document) = ASSETS[0];
        let named = [quoted_after(document, " src=\""), quoted_after(document, " href=\"")].concat();
        assert!(named.iter().any(|path| path == "/assets/script.js"), "{named:?}");
        for path in named.iter().filter(|path| path.starts_with("/assets/")) {
            assert!(asset(path).is_some(), "the document names {path}");
        }
        for (name, _, script) in ASSETS.iter().filter(|(_, kind, _)| *kind == SCRIPT) {
            for path in quoted_after(script, " from \"./") {
                assert!(asset(&format!("/assets/{path}")).is_some(), "{name} imports {path}");
            }
        }
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere_and_nothing_is_inline() {
        for (name, kind, text) in ASSETS {
            let text = text.replace("http://www.w3.org/2000/svg", "");
            for foreign in ["http:", "https:", "url(//", "src=\"//", "href=\"//"] {
                assert!(!text.contains(foreign), "{name} has {foreign}");
            }
            if kind == HTML {
                for inline in ["<style", " style=", " onclick=", " onload=", "<script>", "javascript:"] {
                    assert!(!text.contains(inline), "{name} has {inline}, which the policy forbids");
                }
            }
        }
    }

    #[test]
    fn other_paths_are_not_found() {
        for path in ["", "/index.html", "/assets/", "/assets/../page.rs", "/assets/style.css/", "/status"] {
            assert!(asset(path).is_none(), "{path}");
        }
        assert_eq!(asset("/assets/style.css").map(|(kind, _)| kind), Some(CSS));
    }
}
