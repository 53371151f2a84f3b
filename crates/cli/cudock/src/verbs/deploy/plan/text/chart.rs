//! The cost chart, in the terminal or in a file.

use std::path::Path;

use cudock_plan::{Breakpoint, Chart, Plan};

use crate::failure::Failure;
use crate::output::{self, BOLD, DIM, line, styled};

/// Builds the chart, and writes it if a file is given.
pub(crate) fn draw(plan: &Plan<'_>, title: &str, file: Option<&Path>) -> Result<Chart, Failure> {
    if let Some(file) = file
        && !file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"))
    {
        return Err(Failure::input(format!(
            "a chart is written as SVG, and `{}` does not end in .svg",
            file.display()
        ))
        .hint("use --chart plan.svg, or --chart alone after the path to draw in the terminal"));
    }
    let chart = Chart::new(plan, title);
    if let Some(file) = file {
        std::fs::write(file, chart.svg())
            .map_err(|error| Failure::outside(format!("cannot write {}: {error}", file.display())))?;
    }
    Ok(chart)
}

/// Prints the chart or its file, and the break-even points.
pub(crate) fn print(chart: &Chart, file: Option<&Path>) {
    line("");
    match file {
        None => print_chart(chart),
        Some(file) => line(format!("chart written to {}", file.display())),
    }
    print_breakpoints("Where the cheapest service changes", &chart.breakpoints, &chart.unchanged());
    line(styled(DIM, "  each service by its cheapest offer for the requested workload"));
}

pub(crate) fn print_breakpoints(title: &str, breakpoints: &[Breakpoint], if_none: &str) {
    line(format!("\n{}", styled(BOLD, title)));
    for breakpoint in breakpoints {
        line(output::wrapped("  ", &breakpoint.describe()));
    }
    if breakpoints.is_empty() {
        line(output::wrapped("  ", if_none));
    }
}

fn print_chart(chart: &Chart) {
    line(styled(BOLD, &format!("{} (logarithmic)", chart.axes())));
    for text in chart.terminal(output::width()) {
        line(text);
    }
    for (series, letter) in chart.series.iter().zip('A'..='Z') {
        let (letter, detail) = (styled(BOLD, &letter.to_string()), styled(DIM, &series.detail));
        line(format!("  {letter}  {}  {detail}", series.service));
    }
}
