//! The chart of runs.

use std::time::Duration;

use cudock_loadgen::Load;
use cudock_loadgen::results::plot::{Curve, Series, render, throughput};

use crate::support::{reply, request, run, server, settings};

#[test]
fn every_run_has_two_lines_and_a_name() {
    let address = server(|_| reply(200, "{}").after(Duration::from_millis(1)));
    let reports: Vec<_> = [1, 3]
        .map(|clients| run(&settings(address, Load::Closed { clients }), &[request(address)]))
        .into_iter()
        .collect();
    let labels = ["1 client", "3 <clients>"];
    let series: Vec<_> =
        labels.iter().zip(&reports).map(|(label, report)| Series { label, report }).collect();
    let svg = render("a & b", &series);
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    assert!(svg.contains("a &amp; b") && svg.contains("3 &lt;clients&gt;"));
    // In each of two panels and in the legend.
    assert_eq!(svg.matches("<path class=\"line l0\"").count(), 3);
    assert_eq!(svg.matches("<path class=\"line l1\"").count(), 3);
    assert!(svg.contains("prefers-color-scheme:dark"));
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "positions are numbers");
}

#[test]
fn a_run_without_responses_can_be_rendered() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let report = run(&settings(address, Load::Closed { clients: 1 }), &[request(address)]);
    let svg = render("nothing", &[Series { label: "none", report: &report }]);
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
}

#[test]
fn throughput_against_latency_has_a_line_for_each_curve_and_the_target() {
    let curve = |label, rate| Curve { label, points: vec![(1.0, rate), (20.0, rate * 2.0)] };
    let curves = [curve("current", 100.0), curve("best", 300.0)];
    let svg = throughput("model.onnx", &curves, &[(5.0, 50.0)], Some(10.0));
    // The line and its entry in the legend.
    assert_eq!(svg.matches("<path class=\"line l1\"").count(), 2);
    assert_eq!(svg.matches("<circle").count(), 5);
    assert!(svg.contains(">best</text>") && svg.contains(">target</text>"));
    let empty = throughput("nothing", &[], &[], None);
    assert!(!empty.contains("NaN") && !empty.contains("inf"), "{empty}");
}
