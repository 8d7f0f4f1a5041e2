use super::*;
use restride_tensor::{Formula, FormulaTerm, evaluate};

/// Numbers without end.
struct Random(u64);

impl Random {
    fn next(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % n
    }
}

const SPECIAL: [f32; 12] =
    [0.0, -0.0, 1.0, -1.0, 0.5, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN_POSITIVE, 1e-40, 3e38, -2.5];

/// The results of a random formula. All elements share the last operand.
fn random<'a>(f: &'a Formula, rng: &mut Random, operands: usize, results: usize) -> Vec<FormulaTerm<'a>> {
    let mut numbers: Vec<FormulaTerm<'a>> = (0..operands - 1).map(|k| f.operand(k as u16)).collect();
    numbers.push(f.shared(operands as u16 - 1));
    numbers.push(f.number(SPECIAL[rng.next(12)]));
    let steps = 3 + rng.next(60);
    for _ in 0..steps {
        let (x, y, z) =
            (numbers[rng.next(numbers.len())], numbers[rng.next(numbers.len())], numbers[rng.next(numbers.len())]);
        numbers.push(match rng.next(22) {
            0 => x + y,
            1 => x - y,
            2 => x * y,
            3 => x / y,
            4 => -x,
            5 => x.abs(),
            6 => x.sqrt(),
            7 => x.floor(),
            8 => x.ceil(),
            9 => x.trunc(),
            10 => x.rint(),
            11 => x.larger(y),
            12 => x.smaller(y),
            13 => x.equals(y).choose(y, z),
            14 => (!x.below(y)).choose(z, x),
            15 => x.at_most(y).and(y.differs(z)).as_number(),
            16 => x.holds().or(y.is_nan()).choose(x, z),
            17 => x * f.number(SPECIAL[rng.next(12)]),
            18 => 0.25 - x,
            19 => x.below(y).choose(x, y),
            20 => x.below(y).choose(y, x),
            _ => y.holds().as_number().holds().choose(x, y),
        });
    }
    (0..results).map(|_| numbers[rng.next(numbers.len() - operands) + operands]).collect()
}

#[test]
#[cfg_attr(miri, ignore)]
fn code_has_the_bits_of_its_steps() {
    let mut rng = Random(88172645463325252);
    for seed in 0..3000 {
        let (operands, results) = (2 + rng.next(if seed % 4 == 0 { 24 } else { 4 }), 1 + rng.next(3));
        let f = Formula::default();
        let made = random(&f, &mut rng, operands, results);
        let stores: Vec<CodeItem> =
            made.iter().enumerate().map(|(k, t)| CodeItem::Store(t.at(), (operands + k) as u16)).collect();
        let body = CodeBody::new(f.steps(), &stores, operands + results);
        let Some(code) = MachineCode::of(body) else { return };
        let n = [1, 7, 8, 9, 37][rng.next(5)];
        let row = |rng: &mut Random| -> Vec<f32> {
            (0..n)
                .map(|_| match rng.next(3) {
                    0 => SPECIAL[rng.next(12)],
                    _ => rng.next(2000) as f32 / 100.0 - 10.0,
                })
                .collect()
        };
        let mut rows: Vec<Vec<f32>> = (0..operands).map(|_| row(&mut rng)).collect();
        // What stands behind the elements stays.
        rows.extend((0..results).map(|_| vec![7.5; n + 3]));
        let given = rows.clone();
        let mut addresses: Vec<*mut f32> = rows.iter_mut().map(Vec::as_mut_ptr).collect();
        // SAFETY: rows of `n` elements.
        unsafe { code.run(&mut addresses, &vec![0; operands + results], n, 1) };
        let steps = f.steps();
        for (k, term) in made.iter().enumerate() {
            let row = &rows[operands + k];
            for i in 0..n {
                let xs: Vec<f32> = given[..operands]
                    .iter()
                    .enumerate()
                    .map(|(k, r)| r[if k + 1 < operands { i } else { 0 }])
                    .collect();
                let want = evaluate(&steps[..=usize::from(term.at())], &xs);
                let same = want.to_bits() == row[i].to_bits() || want.is_nan() && row[i].is_nan();
                assert!(same, "seed {seed}, result {k}, element {i}: {} for {want}\n{steps:?}", row[i]);
            }
            assert_eq!(row[n..], [7.5; 3], "seed {seed}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore)]
fn results_may_take_the_place_of_operands() {
    let f = Formula::default();
    let (x, y) = (f.operand(0), f.operand(1));
    let sum = x + y;
    let stores = [CodeItem::Store(sum.at(), 0), CodeItem::Store((sum * y).at(), 1)];
    let Some(code) = MachineCode::of(CodeBody::new(f.steps(), &stores, 2)) else { return };
    let (mut a, mut b) = ([1f32; 11], [2f32; 11]);
    // SAFETY: rows of 11 elements.
    unsafe { code.run(&mut [a.as_mut_ptr(), b.as_mut_ptr()], &[0; 2], 11, 1) };
    assert_eq!((a, b), ([3.0; 11], [6.0; 11]));
}

#[test]
#[cfg_attr(miri, ignore)]
fn equal_bodies_share_code() {
    let body = || {
        let f = Formula::default();
        let x = f.operand(0) * 3.5;
        CodeBody::new(f.steps(), &[CodeItem::Store(x.at(), 1)], 2)
    };
    let (Some(a), Some(b)) = (MachineCode::of(body()), MachineCode::of(body())) else { return };
    assert!(Arc::ptr_eq(&a, &b));
}

#[test]
#[cfg_attr(miri, ignore)]
fn rows_lie_apart_and_sums_are_added_up_in_lanes() {
    let mut rng = Random(88172645463325252);
    for seed in 0..500 {
        // More addresses than registers, in one of four.
        let (operands, sums) = (if seed % 4 == 0 { 12 } else { 2 }, 1 + rng.next(2));
        let (n, rows) = ([1, 8, 63, 64, 100, 200][rng.next(6)], 1 + rng.next(5));
        let f = Formula::default();
        let terms: Vec<FormulaTerm<'_>> = (0..operands).map(|k| f.operand((sums + k) as u16)).collect();
        let all = terms.iter().skip(1).fold(terms[0], |sum, x| sum * 0.5 + *x);
        let mut ends: Vec<CodeItem> =
            (0..sums).map(|k| CodeItem::Sum([all, all * terms[0]][k].at(), k as u16)).collect();
        ends.push(CodeItem::Store(all.at(), (sums + operands) as u16));
        let Some(code) = MachineCode::of(CodeBody::new(f.steps(), &ends, sums + operands + 1)) else { return };
        // Elements from a row to the next, at each address; some read a row again and again.
        let apart: Vec<usize> = (0..=operands)
            .map(|k| match rng.next(3) {
                0 if k < operands => 0,
                more => n + more,
            })
            .collect();
        let mut memory: Vec<Vec<f32>> =
            apart.iter().map(|a| (0..a * rows + n).map(|_| rng.next(2000) as f32 / 100.0 - 10.0).collect()).collect();
        let given = memory.clone();
        let mut lanes = vec![vec![0f32; LANES * rows]; sums];
        let mut addresses: Vec<*mut f32> = lanes.iter_mut().chain(&mut memory).map(Vec::as_mut_ptr).collect();
        let mut bytes = vec![(LANES * 4) as isize; sums];
        bytes.extend(apart.iter().map(|a| (a * 4) as isize));
        // SAFETY: rows of `n` elements, and lanes for each.
        unsafe { code.run(&mut addresses, &bytes, n, rows) };
        for row in 0..rows {
            let mut want = vec![[0f32; LANES]; sums];
            for i in 0..n {
                let x = |k: usize| given[k][apart[k] * row + i];
                let all = (1..operands).fold(x(0), |sum, k| sum * 0.5 + x(k));
                assert_eq!(memory[operands][apart[operands] * row + i].to_bits(), all.to_bits(), "seed {seed}");
                for (lanes, x) in want.iter_mut().zip([all, all * x(0)]) {
                    lanes[i % LANES] += x;
                }
            }
            for (lanes, want) in lanes.iter().zip(want) {
                assert_eq!(lanes[row * LANES..][..LANES], want, "seed {seed}");
            }
        }
    }
}
