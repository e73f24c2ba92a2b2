// SPDX-License-Identifier: GPL-2.0-or-later
//! Durations against scanned CPUs: a fixed cost and a cost for each CPU.

/// A line through points, by least squares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Points.
    pub points: u64,
    /// Value at zero.
    pub fixed: f64,
    /// Standard error of `fixed`.
    pub fixed_error: f64,
    /// Rise for each step.
    pub slope: f64,
    /// Standard error of `slope`.
    pub slope_error: f64,
    /// Share of the scatter that the line explains.
    pub r2: f64,
}

/// The line through `points` of (x, y), as `scipy.stats.linregress` has it. `None`: fewer than three points, or all at
/// the same x, so that no slope can be told.
///
/// Closed form: the crates for it bring a matrix library.
pub fn line(points: &[(f64, f64)]) -> Option<Line> {
    let n = points.len() as f64;
    if points.len() < 3 {
        return None;
    }
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x0, y0) = (mean(|p| p.0), mean(|p| p.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|&(x, y)| of(x - x0, y - y0)).sum::<f64>();
    let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
    if xx <= 0.0 {
        return None;
    }
    let slope = xy / xx;
    // Rounding may leave a little less than nothing.
    let rest = (yy - slope * xy).max(0.0);
    let slope_error = (rest / (n - 2.0) / xx).sqrt();
    let r2 = if yy > 0.0 { 1.0 - rest / yy } else { 0.0 };
    let fixed_error = slope_error * (xx / n + x0 * x0).sqrt();
    Some(Line { points: points.len() as u64, fixed: y0 - slope * x0, fixed_error, slope, slope_error, r2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against scipy.stats.linregress of SciPy 1.17.
    #[test]
    fn the_line_is_scipys() {
        let points = [(0.0, 1100.0), (1.0, 1250.0), (2.0, 1290.0), (3.0, 1500.0), (5.0, 1700.0), (8.0, 2300.0)];
        let line = line(&points).expect("a line");
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        near(line.slope, 146.770_428_015_564_2);
        near(line.fixed, 1_058.560_311_284_046_7);
        near(line.slope_error, 10.974_832_158_511_893);
        near(line.fixed_error, 45.471_666_844_078_484);
        near(line.r2, 0.978_123_771_156_728_4);
    }

    #[test]
    fn no_slope_without_different_points() {
        assert_eq!(line(&[(1.0, 1.0), (2.0, 2.0)]), None);
        assert_eq!(line(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
    }
}
