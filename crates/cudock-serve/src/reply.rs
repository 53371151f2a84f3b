//! From the thread that ran a batch to the tasks that wait for its rows.
//!
//! Waking a task from another thread costs a system call. A batch answers dozens of tasks at once, so their outcomes
//! go into the mailbox of the thread they live on in one piece: one wake-up a batch and thread, and the rest is done
//! by that thread's own postman, where waking is a push onto a list.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use cudock_batcher::Ticket;
use cudock_tensor::Answer;
use tokio::sync::Notify;

use crate::ServeError;
use crate::model::Queue;
use crate::quiet::Quiet;

/// What became of a request.
pub(crate) type Outcome = Result<Answer, ServeError>;

thread_local! {
    static MAILBOX: RefCell<Option<Arc<Mailbox>>> = const { RefCell::new(None) };
}

/// Where outcomes for the tasks of one thread arrive.
#[derive(Default)]
pub(crate) struct Mailbox {
    letters: Mutex<Vec<Letter>>,
    /// Queues whose lanes want to know when the answers are written and the next requests read.
    queues: Mutex<Vec<Arc<Queue>>>,
    arrived: Notify,
}

/// An outcome on its way.
pub(crate) struct Letter {
    cell: Arc<Cell>,
    outcome: Outcome,
}

impl Mailbox {
    /// Makes a mailbox for this thread and the task that empties it; to be run on this thread's runtime.
    pub(crate) fn install() -> impl Future<Output = ()> + Send {
        let mailbox = Arc::new(Self::default());
        MAILBOX.set(Some(Arc::clone(&mailbox)));
        async move {
            let mut letters = Vec::new();
            loop {
                mailbox.arrived.notified().await;
                std::mem::swap(&mut letters, &mut *lock(&mailbox.letters));
                for Letter { cell, outcome } in letters.drain(..) {
                    cell.put(outcome);
                }
                for queue in lock(&mailbox.queues).drain(..) {
                    Quiet::expect(&queue);
                }
            }
        }
    }

    fn post(&self, batch: &mut Vec<Letter>, queue: Option<&Arc<Queue>>) {
        lock(&self.letters).append(batch);
        lock(&self.queues).extend(queue.cloned());
        self.arrived.notify_one();
    }
}

/// Delivers outcomes, those for one thread together.
pub(crate) struct Post {
    bags: Vec<(Arc<Mailbox>, Vec<Letter>)>,
    queue: Option<Arc<Queue>>,
}

impl Post {
    /// Delivers for that queue.
    pub(crate) fn new(queue: Option<Arc<Queue>>) -> Self {
        Self { bags: Vec::new(), queue }
    }

    /// Takes an outcome along.
    pub(crate) fn add(&mut self, sender: Sender, outcome: Outcome) {
        let Sender { cell, mailbox } = sender;
        let Some(mailbox) = mailbox else {
            cell.put(outcome);
            return;
        };
        let letter = Letter { cell, outcome };
        match self.bags.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &mailbox)) {
            Some((_, bag)) => bag.push(letter),
            None => self.bags.push((mailbox, vec![letter])),
        }
    }

    /// Delivers all that was taken along.
    pub(crate) fn deliver(&mut self) {
        for (mailbox, bag) in &mut self.bags {
            if !bag.is_empty() {
                mailbox.post(bag, self.queue.as_ref());
            }
        }
    }
}

#[derive(Default)]
struct Cell {
    state: Mutex<State>,
    /// The ticket the request has with its queue at present.
    ticket: AtomicU64,
}

#[derive(Default)]
struct State {
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

impl Cell {
    fn put(&self, outcome: Outcome) {
        let waker = {
            let mut state = lock(&self.state);
            state.outcome = Some(outcome);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The end that a batch holds.
pub(crate) struct Sender {
    cell: Arc<Cell>,
    mailbox: Option<Arc<Mailbox>>,
}

impl Sender {
    /// Notes the ticket the request has from now on. Only to be called, as [`Receiver::ticket`], under the queue's lock.
    pub(crate) fn note(&self, ticket: Ticket) {
        self.cell.ticket.store(ticket.0, Ordering::Relaxed);
    }

    /// Whether anybody still waits for the outcome.
    pub(crate) fn is_awaited(&self) -> bool {
        Arc::strong_count(&self.cell) > 1
    }
}

/// The end that a task waits on.
pub(crate) struct Receiver {
    cell: Arc<Cell>,
}

/// A pair of ends. Outcomes come by the mailbox of the thread that calls this, if it has one.
pub(crate) fn pair() -> (Sender, Receiver) {
    let cell = Arc::new(Cell::default());
    let mailbox = MAILBOX.with_borrow(Clone::clone);
    (Sender { cell: Arc::clone(&cell), mailbox }, Receiver { cell })
}

impl Receiver {
    /// The ticket the request has at present: another once it is tried again.
    pub(crate) fn ticket(&self) -> Ticket {
        Ticket(self.cell.ticket.load(Ordering::Relaxed))
    }
}

impl Future for Receiver {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let mut state = lock(&self.cell.state);
        if let Some(outcome) = state.outcome.take() {
            return Poll::Ready(outcome);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

/// A lock whose holder panicked holds data that is still whole: every change under these locks is a single move.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
