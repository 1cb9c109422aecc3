//! Scores against forward passes, as an SVG.

use super::measure::Score;
use super::report::{Report, Scored};
use crate::cli::failure::Failure;
use plotters::coord::Shift;
use plotters::prelude::*;

/// Pixels; small enough to stand in a page's text.
const SIZE: (u32, u32) = (640, 400);
const FONT: &str = "sans-serif";
const FONT_SIZE: u32 = 14;
/// Families are many: a hint of each, and the whole in front of them.
const FAMILY: RGBColor = RGBColor(190, 198, 206);
const ALL: RGBColor = RGBColor(20, 90, 170);

/// Percent between a point and its label.
const LABEL_BELOW: f64 = 2.5;

/// Forward passes an answer, and exact match in percent.
type Point = (f64, f64);

/// The plot of the runs in which all `items` were put: a line for everything, in grey one for each
/// family. `None` where there is no such run.
pub fn svg(report: &Report, items: usize) -> Result<Option<String>, Failure> {
    let mut text = String::new();
    let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
    let runs: Vec<&Scored> = report.runs.iter().filter(|run| run.all.items == items).collect();
    if runs.is_empty() {
        return Ok(None);
    }
    draw(&area, &runs)
        .map_err(|cause| Failure::Beyond(format!("cannot draw the plot: {cause}")))?;
    drop(area);
    Ok(Some(text))
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Fault<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

fn draw<'a>(area: &Area<'a>, runs: &[&Scored]) -> Result<(), Fault<'a>> {
    area.fill(&WHITE)?;
    let lines = families(runs);
    let all: Vec<Point> = in_order(runs.iter().map(|run| point(&run.all)));
    let passes = lines.iter().flatten().chain(&all).map(|point| point.0);
    let passes_max = passes.fold(1.0, f64::max) * 1.05;
    // So few passes that whole numbers would say the same of several marks.
    let digits = usize::from(passes_max < 10.0);
    let mut chart = ChartBuilder::on(area)
        .caption("all tasks by denoising steps; in grey single families", (FONT, FONT_SIZE))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(48)
        .build_cartesian_2d(0.0..passes_max, 0.0..105.0)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .label_style((FONT, FONT_SIZE))
        .x_desc("forward passes an answer")
        .y_desc("exact match, %")
        .x_label_formatter(&|passes| format!("{passes:.digits$}"))
        .y_label_formatter(&|percent| format!("{percent:.0}"))
        .draw()?;
    for line in lines {
        chart.draw_series(line.iter().map(|point| Circle::new(*point, 2, FAMILY.filled())))?;
        chart.draw_series(LineSeries::new(line, FAMILY))?;
    }
    chart.draw_series(all.iter().map(|point| Circle::new(*point, 4, ALL.filled())))?;
    chart.draw_series(LineSeries::new(all, ALL.stroke_width(2)))?;
    let label = (FONT, FONT_SIZE).into_font();
    chart.draw_series(runs.iter().map(|run| {
        let (passes, percent) = point(&run.all);
        Text::new(run.steps().to_string(), (passes, percent - LABEL_BELOW), label.clone())
    }))?;
    area.present()
}

/// A line for each family.
fn families(runs: &[&Scored]) -> Vec<Vec<Point>> {
    let count = runs.first().map_or(0, |run| run.families.len());
    let line = |family: usize| in_order(runs.iter().map(|run| point(&run.families[family].1)));
    (0..count).map(line).collect()
}

fn point(score: &Score) -> Point {
    (score.passes_per_answer(), 100.0 * score.exact_match())
}

fn in_order(points: impl Iterator<Item = Point>) -> Vec<Point> {
    let mut points: Vec<Point> = points.collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}
