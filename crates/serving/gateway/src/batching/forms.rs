//! Records whether an upstream's responses can be split.
//!
//! Requests of one form have everything in common but rows and headers. If an answer has a list or an object that is
//! neither named nor known, requests of its form go one by one until the upstream comes back from an outage or the
//! gateway is restarted. An answer that cannot be split for another reason, such as an error with status 200, stops the
//! batches of a form for a while, unless others of that form could be split: then it was about a row.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cudock_base::lock;

use crate::batching::answer::SplitError;

/// Maximum number of forms that are remembered; the oldest is forgotten.
const MAX_FORMS: usize = 1024;
/// How long requests go one by one after an answer without rows.
const PAUSE: Duration = Duration::from_secs(60);
/// Maximum number of reasons that are reported.
const MAX_REPORTS: usize = 64;

/// Whether the responses to each form of requests can be split.
#[derive(Default)]
pub(crate) struct AnswerForms {
    known: Mutex<KnownForms>,
    /// The number of forms whose requests go one by one: usually none, which needs no lock.
    alone: AtomicUsize,
}

/// Forms by their digest.
#[derive(Default)]
struct KnownForms {
    forms: HashMap<u64, Form>,
    oldest: VecDeque<u64>,
    /// Number of forms whose requests go one by one.
    alone: usize,
    reported: HashSet<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// An answer could be split.
    Split,
    /// Requests go one by one, for good or until then.
    Alone(Option<Instant>),
}

/// How to proceed with the requests of a response that cannot be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SplitFailure {
    /// Send each by itself.
    Alone {
        /// Whether the reason has not been reported yet.
        is_news: bool,
    },
    /// The answer is about one of the requests: find it.
    Search,
}

impl AnswerForms {
    /// Whether requests of a form go one by one.
    pub(crate) fn is_alone(&self, form: u64) -> bool {
        if self.alone.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let mut known = lock(&self.known);
        match known.forms.get(&form) {
            Some(Form::Alone(Some(until))) if *until <= Instant::now() => {
                known.set(form, None);
                known.oldest.retain(|other| *other != form);
                self.alone.store(known.alone, Ordering::Relaxed);
                false
            }
            Some(Form::Alone(_)) => true,
            Some(Form::Split) | None => false,
        }
    }

    /// Records that an answer could be split.
    pub(crate) fn on_split(&self, form: u64) {
        let mut known = lock(&self.known);
        if !known.forms.contains_key(&form) {
            self.insert(&mut known, form, Form::Split);
        }
    }

    /// Records that a response to this number of requests could not be split.
    pub(crate) fn on_unsplit(&self, form: u64, error: &SplitError, requests: usize) -> SplitFailure {
        let mut known = lock(&self.known);
        let has_split = known.forms.get(&form) == Some(&Form::Split);
        if error.is_about_form() {
            self.insert(&mut known, form, Form::Alone(None));
        } else if has_split && requests > 1 {
            return SplitFailure::Search;
        } else if !has_split {
            self.insert(&mut known, form, Form::Alone(Instant::now().checked_add(PAUSE)));
        }
        let is_news = known.reported.len() < MAX_REPORTS && known.reported.insert(error.to_string());
        SplitFailure::Alone { is_news }
    }

    /// Forgets everything, because the upstream may be another one now.
    pub(crate) fn clear(&self) {
        let mut known = lock(&self.known);
        *known = KnownForms::default();
        self.alone.store(0, Ordering::Relaxed);
    }

    fn insert(&self, known: &mut KnownForms, form: u64, what: Form) {
        if !known.forms.contains_key(&form) {
            known.oldest.push_back(form);
        }
        known.set(form, Some(what));
        if known.oldest.len() > MAX_FORMS
            && let Some(oldest) = known.oldest.pop_front()
        {
            known.set(oldest, None);
        }
        self.alone.store(known.alone, Ordering::Relaxed);
    }
}

impl KnownForms {
    fn set(&mut self, form: u64, what: Option<Form>) {
        let before = match what {
            Some(what) => self.forms.insert(form, what),
            None => self.forms.remove(&form),
        };
        let count = |form: Option<Form>| usize::from(matches!(form, Some(Form::Alone(_))));
        self.alone = self.alone + count(what) - count(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(key: &str) -> SplitError {
        SplitError::UnknownList { key: key.to_owned() }
    }

    const ALONE: SplitFailure = SplitFailure::Alone { is_news: true };

    #[test]
    fn an_unknown_list_ends_the_batches_of_its_form_only() {
        let forms = AnswerForms::default();
        forms.on_split(1);
        assert_eq!(forms.on_unsplit(1, &unknown("labels"), 8), ALONE);
        assert!(forms.is_alone(1) && !forms.is_alone(2));
        forms.on_split(1);
        assert!(forms.is_alone(1), "a batch that was on its way changes nothing");
        forms.clear();
        assert!(!forms.is_alone(1));
    }

    #[test]
    fn an_answer_without_rows_is_about_a_row_if_others_of_its_form_were_split() {
        let forms = AnswerForms::default();
        forms.on_split(1);
        assert_eq!(forms.on_unsplit(1, &SplitError::NotJson, 8), SplitFailure::Search);
        assert_eq!(forms.on_unsplit(1, &SplitError::NotJson, 1), ALONE);
        assert!(!forms.is_alone(1));
        let known = SplitFailure::Alone { is_news: false };
        assert_eq!(forms.on_unsplit(2, &SplitError::NotJson, 8), known);
        assert!(forms.is_alone(2) && !forms.is_alone(1));
    }

    #[test]
    fn each_reason_is_reported_once_and_memory_is_bounded() {
        let forms = AnswerForms::default();
        let news = (0..5000).filter(|form| forms.on_unsplit(*form, &unknown("labels"), 1) == ALONE).count();
        assert_eq!(news, 1);
        assert!(forms.is_alone(4999) && forms.is_alone(5000 - MAX_FORMS as u64));
        assert!(!forms.is_alone(0), "the oldest is forgotten");
        let keys = (0..200).map(|key| unknown(&format!("key{key}")));
        let news = keys.filter(|error| forms.on_unsplit(1, error, 1) == ALONE).count();
        assert_eq!(news, MAX_REPORTS - 1);
        assert_eq!(lock(&forms.known).forms.len(), MAX_FORMS);
        forms.clear();
        assert_eq!(forms.on_unsplit(1, &unknown("labels"), 1), ALONE);
    }
}
