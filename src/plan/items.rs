//! How many work items an operator has.

use super::{Count, GROUP_PANELS, KEY_ITEM, Op, OpKind, Plan, ROW_ITEM};
use crate::model::Config;

impl Plan {
    /// The rows that `op` has when there are as many canvases, as long, and as many of their rows
    /// wanted as planned.
    pub fn rows_of(&self, op: &Op) -> usize {
        match op.count {
            Count::Canvas => self.limits.canvases * self.limits.rows,
            Count::Wanted => self.limits.canvases * self.limits.wanted,
        }
    }

    /// The work items that the workers claim from `op` then; from the LM head where its logits are
    /// stored, if they are planned. `config` is the planned model's.
    pub fn items_of(&self, op: &Op, config: &Config) -> usize {
        let rows = self.rows_of(op);
        match &op.kind {
            OpKind::Embed { .. }
            | OpKind::Norm { .. }
            | OpKind::Quantize { .. }
            | OpKind::Gather { .. } => rows.div_ceil(ROW_ITEM),
            OpKind::Project { parts, .. } => parts.iter().map(|part| part.matrix.panels()).sum(),
            OpKind::GateUp { gate, .. } => gate.panels(),
            OpKind::RopeKeys { .. } => config.kv_heads * (self.row_capacity / KEY_ITEM),
            OpKind::Attend { blocks, .. } => config.heads * blocks,
            OpKind::LmHead { matrix, logits: Some(_), .. } => matrix.panels(),
            OpKind::LmHead { matrix, .. } => matrix.panels().div_ceil(GROUP_PANELS),
            OpKind::Choose { .. } => rows,
        }
    }
}
