//! SVG charts that are readable on light and dark backgrounds.
//!
//! Lines, points and texts; the caller decides what they mean. Axes are in [`chart`](crate::chart).

use std::fmt::Write as _;

pub const LINE_STYLES: usize = 9;

/// Colors that are distinguishable on white and on near black, also with most kinds of color blindness. Every other
/// style is dashed, so that neighbors differ in more than color.
const COLORS: [&str; LINE_STYLES] =
    ["#2f80c0", "#d55e00", "#009e73", "#9467bd", "#cc79a7", "#3a9fd8", "#8a8f00", "#8c6d5a", "#7f8c99"];

#[derive(Debug)]
pub struct Svg {
    out: String,
}

/// The alignment of a text to its position.
#[derive(Clone, Copy, Debug)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        let mut styles = String::new();
        for (number, color) in COLORS.iter().enumerate() {
            let dash = if number % 2 == 0 { "none" } else { "8 4" };
            let _ = write!(
                styles,
                ".l{number}{{stroke:{color};stroke-dasharray:{dash}}}.d{number}{{fill:{color}}}"
            );
        }
        let title = escape(title);
        let out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\">\n<title>{title}</title>\n<style>\
             svg{{--paper:#fff;--ink:#1b1f24;--soft:#5f6670;--grid:#e3e6ea;--band:#f1e9c9;color-scheme:light dark}}\
             @media(prefers-color-scheme:dark){{svg{{--paper:#16181c;--ink:#e8eaed;--soft:#a3a8b0;--grid:#33373d;\
             --band:#4a4326}}}}\
             .paper{{fill:var(--paper)}}text{{fill:var(--ink);font:12px system-ui,sans-serif}}\
             .soft{{fill:var(--soft);font-size:11px}}.head{{font-weight:600;font-size:15px}}.bold{{font-weight:600}}\
             line,path{{fill:none;stroke-linejoin:round}}.grid{{stroke:var(--grid)}}.axis{{stroke:var(--soft)}}\
             .mark{{stroke:var(--soft);stroke-dasharray:2 3}}.line{{stroke-width:2}}\
             .band{{stroke:var(--band);stroke-width:9;stroke-linecap:round}}\
             .dot{{fill:var(--paper);stroke:var(--ink);stroke-width:1.5}}{styles}</style>\n\
             <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n"
        );
        Self { out }
    }

    /// Adds a text. Classes: `soft`, `head`, `bold`.
    pub fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escape(text);
        let _ = writeln!(
            self.out,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{text}</text>"
        );
    }

    /// Adds a straight line. Classes: `grid`, `axis`, `mark`, `band`.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let _ = writeln!(
            self.out,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" class=\"{class}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    /// Adds a point. Classes: `dot`, and `d0` to `d8` for the line styles.
    pub fn dot(&mut self, (x, y): (f64, f64), radius: f64, class: &str) {
        let _ = writeln!(self.out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" class=\"{class}\"/>");
    }

    /// Adds a line through points. Classes: `line`, and `l0` to `l8` for its style.
    pub fn path(&mut self, points: impl IntoIterator<Item = (f64, f64)>, class: &str) {
        let mut path = String::new();
        for (number, (x, y)) in points.into_iter().enumerate() {
            let _ = write!(path, "{}{x:.1} {y:.1}", if number == 0 { 'M' } else { 'L' });
        }
        let _ = writeln!(self.out, "<path class=\"{class}\" d=\"{path}\"/>");
    }

    pub fn finish(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }
}

fn escape(text: &str) -> String {
    let text = text.replace(char::is_control, " ").replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let mut svg = Svg::new(1.0, 1.0, "a<b>&\u{1}");
        svg.text((0.0, 0.0), Anchor::Start, "", "</text><script>");
        let text = svg.finish();
        assert!(text.contains("<title>a&lt;b&gt;&amp; </title>") && !text.contains("<script>"), "{text}");
    }
}
