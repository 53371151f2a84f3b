//! Views of sweeps: text, JSON, CSV, and what is promised about all of them.

use cudock_sweep::failure_logs::LogTail;
use cudock_sweep::{AttemptEnd, Distribution, Event, Goal, ParameterValue, StopReason, TrialId};
use cudock_sweep_report as view;

use crate::view_support::{Story, digits, objective, parameter, plan, text, tradeoff};

fn json(story: &Story) -> serde_json::Value {
    serde_json::to_value(view::report(&story.sweep, &story.logs, story.now)).unwrap()
}

#[test]
fn show_answers_first_and_explains_each_end() {
    let story = digits();
    insta::assert_snapshot!(view::show(&story.sweep, &story.logs, story.now, false));
}

#[test]
fn verbose_text_has_parameters() {
    let story = digits();
    insta::assert_snapshot!(view::show(&story.sweep, &story.logs, story.now, true));
}

#[test]
fn a_running_trial_that_is_better_is_the_best() {
    let mut story = digits();
    assert_eq!(json(&story)["best"], serde_json::json!([2]));
    let running = story.sweep.live().next().unwrap().0.id;
    story.report(running, "accuracy", &[0.95]);
    assert_eq!(json(&story)["best"], serde_json::json!([running.0]));
    let text = view::show(&story.sweep, &story.logs, story.now, false);
    assert!(text.starts_with("best: trial 4, accuracy 0.95 (maximize), still running\n"), "{text}");
    let live = view::live(&story.sweep, story.now, 100, 24).join("\n");
    assert!(live.contains("best: trial 4, accuracy 0.95 "), "{live}");
    // A failure has no result.
    story.end(running, AttemptEnd::Exited { code: 1 });
    assert_eq!(json(&story)["best"], serde_json::json!([2]));

    // A running trial is on the front as long as it is.
    let objectives = vec![objective("accuracy", Goal::Maximize), objective("latency_ms", Goal::Minimize)];
    let mut story = Story::new(plan("tradeoff", objectives, Vec::new()));
    for (accuracy, latency, ends) in [(0.8, 5.0, true), (0.9, 4.0, false)] {
        let trial = story.start(&[]);
        story.report(trial, "accuracy", &[accuracy]);
        story.report(trial, "latency_ms", &[latency]);
        if ends {
            story.succeed(trial);
        }
    }
    assert_eq!(json(&story)["best"], serde_json::json!([1]));
}

#[test]
fn a_failed_trial_shows_the_end_of_its_log() {
    let mut story = digits();
    let lines = (1..=9).map(|line| format!("line {line}\u{7}")).collect();
    let log = LogTail { path: "trials/3/attempt-2.log".into(), lines };
    story.logs = [(TrialId(3), log)].into_iter().collect();
    let text = view::show(&story.sweep, &story.logs, story.now, false);
    let end = "\n\ntrial 3 failed: exit code 1; the end of trials/3/attempt-2.log:\n  line 5 \n  line 6 ";
    assert!(text.contains(end) && text.ends_with("  line 9 "), "{text}");
    assert!(text.lines().count() <= 24, "{text}");
    assert!(view::show(&story.sweep, &story.logs, story.now, true).contains("  line 1 \n"));
    let report = json(&story);
    assert_eq!(report["trials"][3]["log"].as_array().unwrap().len(), 9);
    assert!(report["trials"][0].get("log").is_none());
}

#[test]
fn several_objectives_are_answered_by_the_front() {
    let story = tradeoff();
    insta::assert_snapshot!(view::show(&story.sweep, &story.logs, story.now, false));
    assert_eq!(json(&story)["best"], serde_json::json!([0, 1]));
}

#[test]
fn the_cheapest_way_to_the_target_is_named() {
    assert!(json(&digits()).get("cheapest").is_none());
    let mut target = objective("accuracy", Goal::Maximize);
    target.target = Some(0.8);
    let mut story = Story::new(plan("digits", vec![target], Vec::new()));
    assert!(
        view::show(&story.sweep, &story.logs, story.now, false)
            .contains("no trial has come to accuracy 0.8\n")
    );
    let slow = story.start(&[]);
    story.report(slow, "accuracy", &[0.5, 0.6, 0.9]);
    story.succeed(slow);
    let fast = story.start(&[]);
    story.report(fast, "accuracy", &[0.5, 0.8, 0.81]);
    story.succeed(fast);
    let text = view::show(&story.sweep, &story.logs, story.now, false);
    assert!(text.contains("\ncheapest to accuracy 0.8: trial 1, $0.02 in 20 s\n"), "{text}");
    assert_eq!(json(&story)["cheapest"][0]["seconds"], 20.0);
}

#[test]
fn a_sweep_without_results_says_so() {
    let story = Story::new(plan("empty", vec![objective("loss", Goal::Minimize)], Vec::new()));
    let text = view::show(&story.sweep, &story.logs, story.now, false);
    assert_eq!(text, "no trial has a result yet\nempty running; 0 of 27 trials, 0 s, $0.00");
    assert!(view::html(&story.sweep, story.now).contains("no trial has a result yet"));
    assert_eq!(view::csv(&story.sweep, story.now).lines().count(), 1);
    assert_eq!(view::optuna_journal(&story.sweep, story.now).lines().count(), 3);
}

#[test]
fn the_report_has_what_the_schema_promises() {
    let story = digits();
    insta::assert_snapshot!(serde_json::to_string_pretty(&json(&story)).unwrap());
    let schema = schemars::schema_for!(view::SweepReport);
    let text = serde_json::to_string(&schema).unwrap();
    for key in ["trials", "parameters", "best", "steps", "reason", "cost"] {
        assert!(text.contains(&format!("\"{key}\"")), "{key}");
    }
}

#[test]
fn csv_has_a_row_for_each_trial() {
    let story = digits();
    insta::assert_snapshot!(view::csv(&story.sweep, story.now));
}

#[test]
fn the_live_table_shows_progress_and_what_runs() {
    let story = digits();
    insta::assert_snapshot!(view::live(&story.sweep, story.now, 100, 24).join("\n"));
}

#[test]
fn every_line_of_the_live_table_fits() {
    let story = digits();
    for (columns, rows) in [(1, 1), (20, 3), (40, 100), (200, 24), (0, 0)] {
        let lines = view::live(&story.sweep, story.now, columns, rows);
        assert!(lines.len() <= rows, "{columns} x {rows}");
        for line in &lines {
            assert!(line.chars().count() <= columns.max(1), "{columns}: {line}");
        }
    }
}

#[test]
fn the_text_of_a_large_sweep_fits_on_one_screen() {
    let mut plan = plan("large", vec![objective("loss", Goal::Minimize)], Vec::new());
    plan.limits.trials = Some(1000);
    let mut story = Story::new(plan);
    for number in 0..200 {
        let trial = story.start(&[("a_parameter_with_a_long_name", ParameterValue::Int(number))]);
        story.report(trial, "loss", &[f64::from(200 - i32::try_from(number).unwrap())]);
        if number % 3 == 0 {
            story.record(Event::StopDecided { trial, attempt: 1, reason: StopReason::User });
            story.end(trial, AttemptEnd::Signaled { signal: 15 });
        } else {
            story.succeed(trial);
        }
    }
    let text = view::show(&story.sweep, &story.logs, story.now, false);
    assert!(text.lines().count() <= 24, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.contains("183 more trials omitted"), "{text}");
    assert!(view::show(&story.sweep, &story.logs, story.now, true).lines().count() > 200);
}

/// Names and messages that try to leave their field, in all views.
#[test]
fn hostile_text_stays_text() {
    const EVIL: &str = "</script><img src=x onerror=alert(1)>\u{1b}[2J\",\n=cmd";
    let choice = Distribution::Choice(vec![text(EVIL)]);
    let mut story =
        Story::new(plan(EVIL, vec![objective(EVIL, Goal::Maximize)], vec![parameter(EVIL, choice)]));
    let trial = story.start(&[(EVIL, text(EVIL))]);
    story.report(trial, EVIL, &[0.5, 0.6]);
    story.succeed(trial);
    let failed = story.start(&[(EVIL, text(EVIL))]);
    story.end(failed, AttemptEnd::FailedToStart { message: EVIL.to_owned() });
    let running = story.start(&[(EVIL, text(EVIL))]);
    story.report(running, EVIL, &[0.1, 0.2]);

    let html = view::html(&story.sweep, story.now);
    assert!(!html.contains("<img") && html.matches("</script>").count() == 1, "{html}");
    for shown in [
        html,
        view::show(&story.sweep, &story.logs, story.now, true),
        view::live(&story.sweep, story.now, 300, 24).join("\n"),
    ] {
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    }
    for line in view::optuna_journal(&story.sweep, story.now).lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    let csv = view::csv(&story.sweep, story.now);
    assert!(csv.starts_with("trial,state,\"params_</script>"), "{csv}");
}
