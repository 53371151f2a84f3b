//! The loads that are tried: numbers of clients.

/// Numbers of clients in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder {
    clients: Vec<usize>,
    /// Distances between loads that are compared, the largest first.
    strides: &'static [usize],
}

impl Ladder {
    /// Powers of two up to a number of clients, and with `is_fine` also the numbers halfway: a latency target may lie between
    /// two powers, while throughput without one hardly depends on it.
    pub fn up_to(most: usize, is_fine: bool) -> Self {
        let powers = (0..usize::BITS).map_while(|power| 1_usize.checked_shl(power));
        let halfway = |clients: usize| [clients, clients + clients / 2];
        let mut clients: Vec<usize> = powers
            .take_while(|clients| *clients <= most.max(1))
            .flat_map(halfway)
            .filter(|clients| *clients <= most.max(1))
            .collect();
        clients.dedup();
        Self { clients, strides: if is_fine { &[2, 1] } else { &[2] } }
    }

    /// These numbers of clients, each of which may be tried.
    pub fn of(mut clients: Vec<usize>) -> Self {
        clients.retain(|clients| *clients > 0);
        clients.sort_unstable();
        clients.dedup();
        Self { clients, strides: &[1] }
    }

    pub(crate) fn strides(&self) -> &'static [usize] {
        self.strides
    }

    /// The index of the load nearest to a number of clients.
    pub(crate) fn nearest(&self, clients: usize) -> usize {
        let distance = |rung: &usize| self.clients(*rung).abs_diff(clients);
        (0..self.clients.len()).min_by_key(distance).unwrap_or_default()
    }

    pub(crate) fn clients(&self, rung: usize) -> usize {
        self.clients.get(rung).copied().unwrap_or(1)
    }

    /// The load a distance away.
    pub(crate) fn moved(&self, rung: usize, stride: isize) -> Option<usize> {
        rung.checked_add_signed(stride).filter(|rung| *rung < self.clients.len())
    }

    /// The loads of an exhaustive grid: powers of two, or all requested ones.
    pub(crate) fn grid(&self) -> impl Iterator<Item = usize> {
        let has_halves = self.strides != [1];
        (0..self.clients.len()).filter(move |rung| !has_halves || self.clients(*rung).is_power_of_two())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_double_and_a_latency_target_also_has_those_between() {
        let ladder = Ladder::up_to(100, true);
        assert_eq!(ladder.clients, [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96]);
        let grid: Vec<usize> = ladder.grid().map(|rung| ladder.clients(rung)).collect();
        assert_eq!(grid, [1, 2, 4, 8, 16, 32, 64]);
        let up = ladder.moved(ladder.nearest(16), 2).unwrap();
        assert_eq!(ladder.clients(up), 32);
        assert_eq!(ladder.clients(ladder.nearest(70)), 64);
        assert_eq!(ladder.moved(0, -1), None);
        assert_eq!(ladder.moved(12, 1), None);
        assert_eq!(Ladder::of(vec![8, 0, 1, 8]).clients, [1, 8]);
    }
}
