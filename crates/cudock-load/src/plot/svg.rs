//! A small writer of SVG.

use std::fmt::Write as _;

/// How lines are told apart: by colour and by dashes, so that either is enough.
pub(super) const LINES: usize = 8;

/// Colours that can be told apart on white and on near black, and by most who do not see all colours.
const COLOURS: [&str; LINES] =
    ["#2f80c0", "#d55e00", "#009e73", "#9467bd", "#cc79a7", "#56b4e9", "#8a8f00", "#8c6d5a"];
const DASHES: [&str; LINES] = ["none", "7 3", "2 3", "10 3 2 3", "none", "7 3", "2 3", "10 3 2 3"];

/// A picture in the making.
#[derive(Debug)]
pub(super) struct Svg {
    out: String,
}

/// Where a text stands to its place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    pub(super) fn new(width: f64, height: f64, title: &str) -> Self {
        let mut style = String::new();
        for (number, (colour, dash)) in COLOURS.iter().zip(DASHES).enumerate() {
            let _ = write!(style, ".l{number}{{stroke:{colour};stroke-dasharray:{dash}}}");
        }
        let out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\">\n<title>{}</title>\n<style>\
             svg{{--paper:#fff;--ink:#1b1f24;--soft:#667;--grid:#e3e6ea;color-scheme:light dark}}\
             @media(prefers-color-scheme:dark){{svg{{--paper:#16181c;--ink:#e8eaed;--soft:#a3a8b0;--grid:#33373d}}}}\
             .paper{{fill:var(--paper)}}text{{fill:var(--ink);font:12px system-ui,sans-serif}}\
             .soft{{fill:var(--soft)}}.head{{font-weight:600;font-size:14px}}\
             .grid{{stroke:var(--grid)}}.axis{{stroke:var(--soft)}}\
             path{{fill:none;stroke-width:2;stroke-linejoin:round}}{style}</style>\n\
             <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n",
            escape(title)
        );
        Self { out }
    }

    pub(super) fn text(&mut self, at: (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = writeln!(
            self.out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{}</text>",
            at.0,
            at.1,
            escape(text)
        );
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let _ = writeln!(
            self.out,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" class=\"{class}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    /// A line through points, in the look of the series with that number.
    pub(super) fn path(&mut self, points: impl IntoIterator<Item = (f64, f64)>, series: usize) {
        let mut path = String::new();
        for (number, (x, y)) in points.into_iter().enumerate() {
            let _ = write!(path, "{}{x:.1} {y:.1}", if number == 0 { 'M' } else { 'L' });
        }
        let _ = writeln!(self.out, "<path class=\"l{}\" d=\"{path}\"/>", series % LINES);
    }

    pub(super) fn finish(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}
