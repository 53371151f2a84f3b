//! Computes arithmetic and a few functions on values that are known.

use super::value::{Argument, Expr, Value};

/// Maximum length of a list; search spaces are shorter.
const LONGEST_RANGE: i64 = 10_000;

/// An operator between two values.
pub(super) fn binary<'t>(operator: &str, left: &Value<'t>, right: &Value<'t>) -> Expr<'t> {
    match (operator, &*left.expr, &*right.expr) {
        ("+", Expr::Text(left), Expr::Text(right)) => Expr::Text(format!("{left}{right}")),
        ("+", Expr::List(left), Expr::List(right)) => Expr::List(left.iter().chain(right).cloned().collect()),
        (_, Expr::Int(left), Expr::Int(right)) => integers(operator, *left, *right),
        _ => match (left.number(), right.number()) {
            (Some(left), Some(right)) => floats(operator, left, right),
            _ => Expr::Unknown,
        },
    }
}

#[allow(clippy::cast_precision_loss, reason = "as in Python")]
fn integers<'t>(operator: &str, left: i64, right: i64) -> Expr<'t> {
    let result = match operator {
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        // Python rounds down.
        "//" => left.checked_div_euclid(right).filter(|_| right > 0),
        "%" => left.checked_rem_euclid(right).filter(|_| right > 0),
        "**" if right >= 0 => u32::try_from(right).ok().and_then(|power| left.checked_pow(power)),
        _ => return floats(operator, left as f64, right as f64),
    };
    result.map_or(Expr::Unknown, Expr::Int)
}

fn floats<'t>(operator: &str, left: f64, right: f64) -> Expr<'t> {
    finite(match operator {
        "+" => left + right,
        "-" => left - right,
        "*" => left * right,
        "/" => left / right,
        "//" => (left / right).floor(),
        "**" => left.powf(right),
        _ => return Expr::Unknown,
    })
}

fn finite<'t>(number: f64) -> Expr<'t> {
    if number.is_finite() { Expr::Float(number) } else { Expr::Unknown }
}

pub(super) fn negative<'t>(value: &Value<'t>) -> Expr<'t> {
    match &*value.expr {
        Expr::Int(number) => number.checked_neg().map_or(Expr::Unknown, Expr::Int),
        Expr::Float(number) => Expr::Float(-number),
        _ => Expr::Unknown,
    }
}

/// The result of a function of Python, `math` or `numpy`; none for other functions.
pub(super) fn function<'t>(callee: &str, arguments: &[Argument<'t>]) -> Option<Expr<'t>> {
    let name =
        ["math.", "np.", "numpy."].iter().find_map(|module| callee.strip_prefix(module)).unwrap_or(callee);
    if name == "range" || name == "arange" {
        return Some(range(arguments));
    }
    let [argument] = arguments else { return None };
    let value = &argument.value;
    match name {
        "list" | "tuple" => matches!(&*value.expr, Expr::List(_)).then(|| (*value.expr).clone()),
        "float" => value.number().or_else(|| value.text()?.parse().ok()).map(finite),
        "int" => match &*value.expr {
            Expr::Int(number) => Some(Expr::Int(*number)),
            Expr::Text(text) => text.parse().ok().map(Expr::Int),
            _ => None,
        },
        "str" => match &*value.expr {
            Expr::Text(text) => Some(Expr::Text(text.clone())),
            Expr::Int(number) => Some(Expr::Text(number.to_string())),
            _ => None,
        },
        "log" => value.number().map(|number| finite(number.ln())),
        "log10" => value.number().map(|number| finite(number.log10())),
        "log2" => value.number().map(|number| finite(number.log2())),
        "exp" => value.number().map(|number| finite(number.exp())),
        _ => None,
    }
}

fn range<'t>(arguments: &[Argument<'t>]) -> Expr<'t> {
    let mut numbers = Vec::new();
    for argument in arguments {
        match &*argument.value.expr {
            Expr::Int(number) if argument.name.is_none() => numbers.push(*number),
            _ => return Expr::Unknown,
        }
    }
    let (start, end, step) = match numbers.as_slice() {
        [end] => (0, *end, 1),
        [start, end] => (*start, *end, 1),
        [start, end, step] => (*start, *end, *step),
        _ => return Expr::Unknown,
    };
    let is_short = end.checked_sub(start).is_some_and(|length| length / step.max(1) <= LONGEST_RANGE);
    let (Ok(step), true, Some(argument)) = (usize::try_from(step), is_short, arguments.first()) else {
        return Expr::Unknown;
    };
    let member = |number| Value { expr: Expr::Int(number).into(), name: None, ..argument.value };
    if step == 0 { Expr::Unknown } else { Expr::List((start..end).step_by(step).map(member).collect()) }
}
