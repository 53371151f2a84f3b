//! Values in a Python program, and where they stand.

use std::rc::Rc;

use cudock_base::bug::Parts;

use crate::read::Token;

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(in crate::rewrite) struct Value<'t> {
    /// Shared, so that a name that is used many times costs nothing.
    pub(in crate::rewrite) expr: Rc<Expr<'t>>,
    /// The variable that it was taken from.
    pub(in crate::rewrite) name: Option<&'t str>,
    pub(in crate::rewrite) start: usize,
    pub(in crate::rewrite) end: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(in crate::rewrite) enum Expr<'t> {
    Text(String),
    Int(i64),
    Float(f64),
    Bool(bool),
    None,
    /// A name without a known value, with its attributes.
    Name(&'t str),
    /// A list or tuple.
    List(Vec<Value<'t>>),
    Map(Vec<(Value<'t>, Value<'t>)>),
    Call(PythonCall<'t>),
    Unknown,
}

/// A call, or an index in brackets.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::rewrite) struct PythonCall<'t> {
    /// The name with its qualifiers; `.method` of another value.
    pub(in crate::rewrite) callee: &'t str,
    pub(in crate::rewrite) receiver: Option<Rc<Expr<'t>>>,
    pub(in crate::rewrite) arguments: Vec<Argument<'t>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(in crate::rewrite) struct Argument<'t> {
    pub(in crate::rewrite) name: Option<&'t str>,
    /// `*list` or `**map`.
    pub(in crate::rewrite) is_unpacked: bool,
    pub(in crate::rewrite) value: Value<'t>,
}

/// The text decides, not where it stands.
impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.expr == other.expr
    }
}

impl<'t> Value<'t> {
    pub(in crate::rewrite) fn text(&self) -> Option<&str> {
        match &*self.expr {
            Expr::Text(text) => Some(text),
            _ => None,
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "numbers in programs are small")]
    pub(in crate::rewrite) fn number(&self) -> Option<f64> {
        match &*self.expr {
            Expr::Int(number) => Some(*number as f64),
            Expr::Float(number) => Some(*number),
            _ => None,
        }
    }

    pub(in crate::rewrite) fn call(&self) -> Option<&PythonCall<'t>> {
        match &*self.expr {
            Expr::Call(call) => Some(call),
            _ => None,
        }
    }

    /// A number, text or boolean as JSON.
    pub(in crate::rewrite) fn scalar(&self) -> Option<serde_json::Value> {
        match &*self.expr {
            Expr::Text(text) => Some(text.as_str().into()),
            Expr::Int(number) => Some((*number).into()),
            Expr::Float(number) => serde_json::Number::from_f64(*number).map(Into::into),
            Expr::Bool(value) => Some((*value).into()),
            _ => None,
        }
    }
}

impl<'t> PythonCall<'t> {
    /// Whether a function of this name is called, whatever it is qualified by.
    pub(in crate::rewrite) fn is(&self, name: &str) -> bool {
        is_named(self.callee, name)
    }

    /// The value of an argument, given by position among `order` or by name.
    pub(in crate::rewrite) fn argument(&self, order: &[&str], name: &str) -> Option<&Value<'t>> {
        let given = || self.arguments.iter().filter(|argument| !argument.is_unpacked);
        let by_name = given().find(|argument| argument.name == Some(name));
        let position = order.iter().position(|known| *known == name);
        let by_position =
            || position.and_then(|position| given().filter(|argument| argument.name.is_none()).nth(position));
        by_name.or_else(by_position).map(|argument| &argument.value).filter(|value| *value.expr != Expr::None)
    }
}

/// Whether a qualified name ends with these segments.
pub(in crate::rewrite) fn is_named(qualified: &str, name: &str) -> bool {
    qualified.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

pub(in crate::rewrite) fn slice(text: &str, token: Token) -> &str {
    text.part(token.start..token.end)
}
