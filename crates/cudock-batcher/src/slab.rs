//! Values kept in place under small numbers, which are used again.

/// The number of nothing.
pub(crate) const NONE: u32 = u32::MAX;

/// Values by number. A number is given again after its value was taken, so memory is what was ever in use at once.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    /// Keeps a value; nothing if there are more than 32 bits can count.
    pub(crate) fn insert(&mut self, value: T) -> Option<u32> {
        if let Some(number) = self.free.pop() {
            *self.places.get_mut(number as usize)? = Some(value);
            return Some(number);
        }
        let number = u32::try_from(self.places.len()).ok().filter(|&number| number != NONE)?;
        self.places.push(Some(value));
        Some(number)
    }

    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.places.get(number as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.places.get_mut(number as usize)?.as_mut()
    }

    pub(crate) fn take(&mut self, number: u32) -> Option<T> {
        let value = self.places.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(value)
    }
}
