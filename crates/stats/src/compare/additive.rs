//! Rows + blocks by least squares.
//!
//! figure = row + block + noise: the analysis of a randomised block design (Cochran & Cox, "Experimental Designs", 2nd ed., 1957,
//! §4.2). Effects that a block has on all rows are removed. If trials are missing, the same equations hold, reduced to the rows
//! (the intra-block analysis of incomplete blocks, ibid. §9; Searle, "Linear Models", 1971, §7.4). Without blocks all figures are
//! in one, and this is the one-way layout.

use std::collections::BTreeMap;

/// The work for incomplete blocks grows with the cube of the rows; this many take a few milliseconds.
const MAX_INCOMPLETE: usize = 200;

#[derive(Debug, Clone, Copy)]
struct Cell {
    row: usize,
    block: usize,
    value: f64,
}

pub(super) struct Additive {
    cells: Vec<Cell>,
    rows: usize,
    /// For each block how many figures of each row it holds.
    held: Vec<Vec<f64>>,
    sizes: Vec<f64>,
    inverse: Inverse,
    /// Figures less what the model says of them, in the order of `cells`.
    pub(super) residuals: Vec<f64>,
    pub(super) freedom: f64,
    /// For each row the sum of its squared residuals and the degrees of freedom that it rests on.
    pub(super) of_rows: Vec<(f64, f64)>,
}

/// A generalised inverse, for directions that sum to 0.
enum Inverse {
    /// If every block holds every row equally often, or there is one block: only its diagonal.
    Diagonal(Vec<f64>),
    Dense(Vec<Vec<f64>>),
}

impl Inverse {
    fn times(&self, direction: &[f64]) -> Vec<f64> {
        match self {
            Self::Diagonal(diagonal) => diagonal.iter().zip(direction).map(|(a, b)| a * b).collect(),
            Self::Dense(lines) => lines.iter().map(|line| dot(line, direction)).collect(),
        }
    }

    fn diagonal(&self, row: usize) -> f64 {
        match self {
            Self::Diagonal(diagonal) => diagonal[row],
            Self::Dense(lines) => lines[row][row],
        }
    }
}

/// A linear combination of the rows' means.
pub(super) struct Contrast {
    pub(super) estimate: f64,
    /// For each row the sum of the squared weights that its figures have: the variance is the sum of these times the rows'
    /// variances.
    pub(super) weights: Vec<f64>,
}

impl Additive {
    /// Fits figures that are given row by row, with the block of each. The blocks must connect all rows ([`block_groups`]). `None` when
    /// there are too many rows for incomplete blocks.
    pub(super) fn fit(figures: &[Vec<f64>], blocks: &[Vec<usize>]) -> Option<Self> {
        let mut names: Vec<usize> = blocks.iter().flatten().copied().collect();
        names.sort_unstable();
        names.dedup();
        let rows = figures.len();
        let place = |name: &usize| names.binary_search(name).expect("every name is in the list");
        let cells: Vec<Cell> = figures
            .iter()
            .zip(blocks)
            .enumerate()
            .flat_map(|(row, (values, blocks))| {
                let in_row = values.iter().zip(blocks);
                in_row.map(move |(&value, block)| Cell { row, block: place(block), value }).collect::<Vec<_>>()
            })
            .collect();
        let mut held = vec![vec![0.0; rows]; names.len()];
        for cell in &cells {
            held[cell.block][cell.row] += 1.0;
        }
        let sizes: Vec<f64> = held.iter().map(|of_rows| of_rows.iter().sum()).collect();
        let inverse = inverse(&held, &sizes, rows)?;
        let freedom = (cells.len() + 1) as f64 - (rows + names.len()) as f64;
        let mut model = Self { cells, rows, held, sizes, inverse, residuals: Vec::new(), freedom, of_rows: Vec::new() };
        model.take_residuals();
        Some(model)
    }

    fn take_residuals(&mut self) {
        let mut block_means = vec![0.0; self.sizes.len()];
        for cell in &self.cells {
            block_means[cell.block] += cell.value / self.sizes[cell.block];
        }
        let mut adjusted = vec![0.0; self.rows];
        for cell in &self.cells {
            adjusted[cell.row] += cell.value - block_means[cell.block];
        }
        let effects = self.inverse.times(&adjusted);
        let offsets: Vec<f64> =
            self.held.iter().zip(&self.sizes).map(|(held, size)| dot(held, &effects) / size).collect();
        let fitted = |cell: &Cell| block_means[cell.block] + effects[cell.row] - offsets[cell.block];
        self.residuals = self.cells.iter().map(|cell| cell.value - fitted(cell)).collect();
        self.of_rows = vec![(0.0, 0.0); self.rows];
        // The leverage of the figure of row r in block b is 1/size + zᵀ inverse z, with z = e(r) − held(b)/size.
        let of_blocks: Vec<(Vec<f64>, f64)> = self
            .held
            .iter()
            .map(|held| {
                let image = self.inverse.times(held);
                let square = dot(held, &image);
                (image, square)
            })
            .collect();
        for (cell, residual) in self.cells.iter().zip(&self.residuals) {
            let (size, (image, square)) = (self.sizes[cell.block], &of_blocks[cell.block]);
            let row = self.inverse.diagonal(cell.row) - 2.0 * image[cell.row] / size + square / (size * size);
            let (squares, freedom) = &mut self.of_rows[cell.row];
            *squares += residual * residual;
            *freedom += 1.0 - 1.0 / size - row;
        }
    }

    /// Row `other` less row `baseline`.
    pub(super) fn difference(&self, baseline: usize, other: usize) -> Contrast {
        if let Inverse::Diagonal(_) = self.inverse {
            let (a, mut b) = (self.plain_mean(baseline), self.plain_mean(other));
            b.estimate -= a.estimate;
            b.weights[baseline] += a.weights[baseline];
            return b;
        }
        let mut direction = vec![0.0; self.rows];
        direction[other] += 1.0;
        direction[baseline] -= 1.0;
        self.contrast(&direction, 0.0)
    }

    /// A row's mean over all blocks, including those in which it has no figure.
    pub(super) fn mean(&self, row: usize) -> Contrast {
        let alike = self.sizes.iter().all(|size| *size == self.sizes[0]);
        if matches!(self.inverse, Inverse::Diagonal(_)) && alike {
            return self.plain_mean(row);
        }
        let blocks = self.sizes.len() as f64;
        let mut direction = vec![0.0; self.rows];
        direction[row] += 1.0;
        for (held, size) in self.held.iter().zip(&self.sizes) {
            for (weight, n) in direction.iter_mut().zip(held) {
                *weight -= n / size / blocks;
            }
        }
        self.contrast(&direction, 1.0 / blocks)
    }

    /// A row's mean over its own figures: what all of this comes to if no block lacks a row, without what is left of the others' when
    /// they cancel out.
    fn plain_mean(&self, row: usize) -> Contrast {
        let (sum, n) = self
            .cells
            .iter()
            .filter(|cell| cell.row == row)
            .fold((0.0, 0.0), |(sum, n), cell| (sum + cell.value, n + 1.0));
        let mut weights = vec![0.0; self.rows];
        weights[row] = 1.0 / n;
        Contrast { estimate: sum / n, weights }
    }

    /// Σ direction · row effects + `of_blocks` · Σ block means. The figure of row r in block b has the weight
    /// u(r) − Σ u(s) n(s, b) / size(b) + of_blocks / size(b), with u the inverse times the direction.
    fn contrast(&self, direction: &[f64], of_blocks: f64) -> Contrast {
        let u = self.inverse.times(direction);
        let offsets: Vec<f64> =
            self.held.iter().zip(&self.sizes).map(|(held, size)| (of_blocks - dot(held, &u)) / size).collect();
        let mut contrast = Contrast { estimate: 0.0, weights: vec![0.0; self.rows] };
        for cell in &self.cells {
            let weight = u[cell.row] + offsets[cell.block];
            contrast.estimate += weight * cell.value;
            contrast.weights[cell.row] += weight * weight;
        }
        contrast
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// For each row the group that it belongs to, from 0: rows are in one group if blocks connect them, that is if one block holds both, or
/// other rows link their blocks. Rows of different groups cannot be compared within blocks. `blocks` has the blocks of each row's figures.
pub fn block_groups(blocks: &[Vec<usize>]) -> Vec<usize> {
    let mut rows_of: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (row, of_row) in blocks.iter().enumerate() {
        for block in of_row {
            rows_of.entry(*block).or_default().push(row);
        }
    }
    let mut groups: Vec<Option<usize>> = vec![None; blocks.len()];
    let mut count = 0;
    for first in 0..blocks.len() {
        if groups[first].is_some() {
            continue;
        }
        let mut open = vec![first];
        groups[first] = Some(count);
        while let Some(row) = open.pop() {
            for block in &blocks[row] {
                // Each block is followed once.
                for other in rows_of.remove(block).unwrap_or_default() {
                    if groups[other].replace(count).is_none() {
                        open.push(other);
                    }
                }
            }
        }
        count += 1;
    }
    groups.into_iter().flatten().collect()
}

/// Of C = diag(n) − Σ over blocks of held · heldᵀ / size.
fn inverse(held: &[Vec<f64>], sizes: &[f64], rows: usize) -> Option<Inverse> {
    let complete = held.iter().all(|of_rows| of_rows.iter().all(|n| *n == of_rows[0]));
    if complete || held.len() == 1 {
        let total = |row: usize| held.iter().map(|of_rows| of_rows[row]).sum::<f64>();
        return Some(Inverse::Diagonal((0..rows).map(|row| 1.0 / total(row)).collect()));
    }
    if rows > MAX_INCOMPLETE {
        return None;
    }
    // C + J/rows has no direction left that it takes to 0.
    let shift = 1.0 / rows as f64;
    let mut matrix = vec![vec![shift; rows]; rows];
    for (of_rows, size) in held.iter().zip(sizes) {
        for i in (0..rows).filter(|i| of_rows[*i] > 0.0) {
            matrix[i][i] += of_rows[i];
            for j in 0..rows {
                matrix[i][j] -= of_rows[i] * of_rows[j] / size;
            }
        }
    }
    Some(Inverse::Dense(invert(matrix)))
}

/// Gauss–Jordan; the matrix is symmetric and positive definite, so no pivoting is needed.
fn invert(mut matrix: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let n = matrix.len();
    let mut inverse: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for pivot in 0..n {
        let scale = 1.0 / matrix[pivot][pivot];
        for value in matrix[pivot].iter_mut().chain(&mut inverse[pivot]) {
            *value *= scale;
        }
        let (line, of_inverse) = (matrix[pivot].clone(), inverse[pivot].clone());
        for row in (0..n).filter(|row| *row != pivot) {
            let factor = matrix[row][pivot];
            if factor != 0.0 {
                for column in 0..n {
                    matrix[row][column] -= factor * line[column];
                    inverse[row][column] -= factor * of_inverse[column];
                }
            }
        }
    }
    inverse
}
