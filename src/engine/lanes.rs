//! Where the keys and values of each canvas lie.

/// Room for the keys and values of as many canvases as are planned for. A lane is known by the rows
/// of keys and values before its own.
#[derive(Debug)]
pub(super) struct Lanes {
    lanes: Box<[Lane]>,
    /// Rows of each.
    rows: usize,
    /// Counts what lanes are used for.
    uses: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    /// The canvas whose keys and values are in it, and may be needed again.
    kept_of: Option<u64>,
    /// When it was used last.
    used: u64,
}

impl Lanes {
    /// One for each of `canvases`, at least one, that share `row_capacity` rows; none is used.
    pub fn new(canvases: usize, row_capacity: usize) -> Lanes {
        let lanes = vec![Lane::default(); canvases].into();
        Lanes { lanes, rows: row_capacity / canvases, uses: 0 }
    }

    /// The first row of what is kept for a canvas, which is given away after all others now.
    pub fn touch(&mut self, canvas: u64) -> Option<usize> {
        let lane = self.lanes.iter().position(|lane| lane.kept_of == Some(canvas))?;
        Some(self.use_for(lane, Some(canvas)))
    }

    /// The first row of a lane for a canvas, or for nobody beyond this pass: one that nobody needs,
    /// or the one that has not been used for the longest time.
    pub fn take(&mut self, canvas: Option<u64>) -> usize {
        let age = |lane: &usize| (self.lanes[*lane].kept_of.is_some(), self.lanes[*lane].used);
        let Some(lane) = (0..self.lanes.len()).min_by_key(age) else {
            unreachable!("limits are for one canvas at least")
        };
        self.use_for(lane, canvas)
    }

    fn use_for(&mut self, lane: usize, canvas: Option<u64>) -> usize {
        self.uses += 1;
        self.lanes[lane] = Lane { kept_of: canvas, used: self.uses };
        lane * self.rows
    }

    /// What has been kept for a canvas is of no more use.
    pub fn release(&mut self, canvas: u64) {
        let mut lanes = self.lanes.iter_mut();
        if let Some(lane) = lanes.find(|lane| lane.kept_of == Some(canvas)) {
            lane.kept_of = None;
        }
    }

    /// Takes what is in the lane that was used last for a canvas's own.
    pub fn assign_last(&mut self, canvas: u64) {
        if let Some(last) = self.lanes.iter_mut().max_by_key(|lane| lane.used) {
            last.kept_of = Some(canvas);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_given_away_by_need_then_by_age() {
        let mut lanes = Lanes::new(3, 192);
        assert_eq!([7, 8, 9].map(|canvas| lanes.take(Some(canvas))), [0, 64, 128]);
        // The first is used again, so that the second is the oldest.
        assert_eq!((lanes.touch(7), lanes.touch(10)), (Some(0), None));
        assert_eq!(lanes.take(Some(10)), 64);
        assert_eq!(lanes.touch(8), None);
        lanes.release(7);
        assert_eq!(lanes.touch(7), None);
        assert_eq!((lanes.take(Some(11)), lanes.take(Some(12))), (0, 128));
        lanes.assign_last(13);
        assert_eq!((lanes.touch(13), lanes.touch(12)), (Some(128), None));
        // What nobody keeps goes first.
        assert_eq!(lanes.take(None), 64);
        assert_eq!((lanes.touch(10), lanes.take(Some(14))), (None, 64));
    }
}
