//! Where the keys and values of each canvas lie.

/// Room for the keys and values of as many canvases as are planned for.
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

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LaneId(usize);

impl Lanes {
    /// Lanes of `rows` rows each, none of them used.
    pub fn new(canvases: usize, rows: usize) -> Lanes {
        Lanes { lanes: vec![Lane::default(); canvases].into(), rows, uses: 0 }
    }

    /// The lane that has been kept for a canvas.
    pub fn kept_of(&self, canvas: u64) -> Option<LaneId> {
        self.lanes.iter().position(|lane| lane.kept_of == Some(canvas)).map(LaneId)
    }

    /// Notes that a lane is being used: the others are given away before it.
    pub fn touch(&mut self, lane: LaneId) {
        self.uses += 1;
        self.lanes[lane.0].used = self.uses;
    }

    /// The lane to give away next: one that nobody needs, or the one that has not been used for the
    /// longest time.
    pub fn oldest(&self) -> LaneId {
        let age = |lane: &usize| (self.lanes[*lane].kept_of.is_some(), self.lanes[*lane].used);
        let Some(lane) = (0..self.lanes.len()).min_by_key(age) else {
            unreachable!("limits are for one canvas at least")
        };
        LaneId(lane)
    }

    /// Keeps the lane for a canvas, or for nobody, from now on.
    pub fn assign(&mut self, lane: LaneId, canvas: Option<u64>) {
        self.lanes[lane.0].kept_of = canvas;
        self.touch(lane);
    }

    /// What has been kept for a canvas is of no more use.
    pub fn release(&mut self, canvas: u64) {
        if let Some(lane) = self.kept_of(canvas) {
            self.lanes[lane.0].kept_of = None;
        }
    }

    /// Rows of keys and values before those of the lane.
    pub fn first_row(&self, lane: LaneId) -> usize {
        lane.0 * self.rows
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

    fn take(lanes: &mut Lanes, canvas: u64) -> LaneId {
        let lane = lanes.oldest();
        lanes.assign(lane, Some(canvas));
        lane
    }

    #[test]
    fn lanes_are_given_away_by_need_then_by_age() {
        let mut lanes = Lanes::new(3, 64);
        let taken = [7, 8, 9].map(|canvas| take(&mut lanes, canvas));
        assert_eq!(taken.map(|lane| lanes.first_row(lane)), [0, 64, 128]);
        assert_eq!(lanes.kept_of(8), Some(taken[1]));
        lanes.touch(taken[0]);
        assert_eq!(take(&mut lanes, 10), taken[1]);
        assert_eq!(lanes.kept_of(8), None);
        lanes.release(7);
        assert_eq!(lanes.kept_of(7), None);
        assert_eq!(take(&mut lanes, 11), taken[0]);
        assert_eq!(take(&mut lanes, 12), taken[2]);
        lanes.assign_last(13);
        assert_eq!((lanes.kept_of(13), lanes.kept_of(12)), (Some(taken[2]), None));
        lanes.assign(taken[1], None);
        assert_eq!((lanes.oldest(), lanes.kept_of(10)), (taken[1], None));
    }
}
