//! Items in the file's order, found by their names.

/// Something with a name that no other item of its table has.
pub trait Named {
    /// The name.
    fn name(&self) -> &str;
}

/// A table whose items are found by name.
#[derive(Debug)]
pub struct ByName<T> {
    items: Vec<T>,
    /// Indices into `items`, ordered by name.
    order: Vec<u32>,
}

impl<T: Named> ByName<T> {
    /// The table of `items`, or the later of two that have the same name.
    pub fn new(mut items: Vec<T>) -> Result<Self, T> {
        let name = |index: u32| items[index as usize].name();
        let mut order: Vec<u32> = (0..).take(items.len()).collect();
        order.sort_unstable_by(|&a, &b| (name(a), a).cmp(&(name(b), b)));
        let twice = order.windows(2).find(|pair| name(pair[0]) == name(pair[1]));
        match twice.map(|pair| pair[1] as usize) {
            Some(index) => Err(items.swap_remove(index)),
            None => Ok(Self { items, order }),
        }
    }

    /// The items in the file's order.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// The items alone.
    pub fn into_items(self) -> Vec<T> {
        self.items
    }

    /// The index of the item of this name.
    pub fn find(&self, name: &str) -> Option<usize> {
        let item_name = |index: u32| self.items[index as usize].name();
        let place = self.order.binary_search_by(|&index| item_name(index).cmp(name)).ok()?;
        Some(self.order[place] as usize)
    }
}
