//! Forecasts when the next requests arrive.
//!
//! Most clients send their next request after they received a response. So the requests of a finished batch come
//! back: the first one after the time that the network and the client take, the others close behind. The number of
//! clients is estimated from the largest number of requests that were in the server at once recently. Both together
//! show an idle device whether more requests are about to join those in the queue.

use crate::convert::{f64_to_ns, ns_to_f64, to_f64};
use crate::moving_average::MovingAverage;

/// Number of finished batches after which an old peak is forgotten; it takes twice as many at most.
const WINDOW: u32 = 16;
/// Uncertainty of every gap, in nanoseconds.
const JITTER: f64 = 5_000.0;

#[derive(Debug, Default)]
pub(crate) struct ArrivalModel {
    last_arrival: u64,
    last_response: Option<u64>,
    arrivals_since_response: u32,
    /// Time between two arrivals with no response in between.
    gap: MovingAverage,
    /// Time from a response to the next arrival.
    return_time: MovingAverage,
    last_offer: Option<u64>,
    /// Time between two requests, admitted or not.
    offer_gap: MovingAverage,
    /// Maximum number of requests in the server at once, in this window and in the one before.
    peak: usize,
    previous_peak: usize,
    finished_batches: u32,
    prediction: Option<Prediction>,
    /// Moving share of predictions that failed.
    failure_rate: f64,
}

/// An open prediction: `remaining` more requests arrive by `until`. Its result does not depend on whether the device
/// really waits, so the forecast is validated all the time at no cost.
#[derive(Clone, Copy, Debug)]
struct Prediction {
    until: u64,
    remaining: usize,
}

/// Expected arrival times, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ArrivalForecast {
    /// When all missing requests will have arrived.
    pub(crate) all: f64,
    /// Latest time at which the next request may arrive before the forecast counts as failed.
    pub(crate) next: u64,
}

impl ArrivalModel {
    /// Records a request before it is admitted or rejected.
    pub(crate) fn on_offered(&mut self, now: u64) {
        if let Some(last) = self.last_offer.replace(now) {
            self.offer_gap.learn(ns_to_f64(now.saturating_sub(last)));
        }
    }

    /// Number of requests expected within `nanos`, admitted or not.
    pub(crate) fn offers_within(&self, nanos: f64) -> usize {
        self.offer_gap
            .value()
            .map_or(0, |gap| usize::try_from(f64_to_ns(nanos / gap.max(1.0))).unwrap_or(usize::MAX))
    }

    /// Records an admitted request; `in_flight` requests are queued or running now.
    pub(crate) fn on_admitted(&mut self, now: u64, in_flight: usize) {
        match self.last_response {
            Some(response) if self.arrivals_since_response == 0 => {
                self.return_time.learn(ns_to_f64(now.saturating_sub(response)));
            }
            Some(_) => {
                self.gap.learn(ns_to_f64(now.saturating_sub(self.last_arrival)));
            }
            None => {}
        }
        self.resolve_prediction(now, 1);
        self.last_arrival = now;
        self.arrivals_since_response = self.arrivals_since_response.saturating_add(1);
        self.peak = self.peak.max(in_flight);
    }

    /// Records a finished batch; `in_flight` requests are still queued or running.
    pub(crate) fn on_responded(&mut self, now: u64, in_flight: usize) {
        self.last_response = Some(now);
        self.arrivals_since_response = 0;
        self.finished_batches += 1;
        if self.finished_batches >= WINDOW {
            self.finished_batches = 0;
            self.previous_peak = self.peak;
            self.peak = in_flight;
        }
    }

    /// Predicts that most of `missing` requests arrive by `until`, unless another prediction is still open.
    pub(crate) fn predict(&mut self, now: u64, until: u64, missing: usize) {
        self.resolve_prediction(now, 0);
        if self.prediction.is_none() {
            self.prediction = Some(Prediction { until, remaining: missing - missing / 4 });
        }
    }

    /// Whether most of the recent predictions came true.
    pub(crate) fn is_reliable(&self) -> bool {
        self.failure_rate < 0.5
    }

    fn resolve_prediction(&mut self, now: u64, arrived: usize) {
        let Some(prediction) = &mut self.prediction else { return };
        let failed = now > prediction.until;
        prediction.remaining = prediction.remaining.saturating_sub(arrived);
        if failed || prediction.remaining == 0 {
            self.failure_rate += (if failed { 1.0 } else { 0.0 } - self.failure_rate) / 8.0;
            self.prediction = None;
        }
    }

    /// Estimated number of clients.
    pub(crate) fn clients(&self) -> usize {
        self.peak.max(self.previous_peak)
    }

    pub(crate) fn gap(&self) -> Option<f64> {
        self.gap.value()
    }

    pub(crate) fn return_time(&self) -> Option<f64> {
        self.return_time.value()
    }

    /// Forecasts the arrival of `missing` more requests, given that the latest response was, or will be, at `response`.
    pub(crate) fn forecast(&self, response: u64, missing: usize) -> Option<ArrivalForecast> {
        let gap = self.gap.value();
        let returning =
            self.arrivals_since_response == 0 || self.last_response.is_none_or(|last| last < response);
        let (next, slack) = if returning {
            let return_time = self.return_time.value()?;
            (ns_to_f64(response) + return_time, return_time + 2.0 * gap.unwrap_or(0.0) + JITTER)
        } else {
            (ns_to_f64(self.last_arrival) + gap?, 2.0 * gap? + JITTER)
        };
        let more = to_f64(missing.saturating_sub(1));
        let all = if more > 0.0 { next + more * gap? } else { next };
        Some(ArrivalForecast { all, next: f64_to_ns(next + slack) })
    }
}
