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
        let stores: Vec<(u16, u16)> = made.iter().enumerate().map(|(k, t)| (t.at(), (operands + k) as u16)).collect();
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
        let addresses: Vec<*mut f32> = rows.iter_mut().map(Vec::as_mut_ptr).collect();
        // SAFETY: rows of `n` elements.
        unsafe { code.run(&addresses, n) };
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
    let stores = [(sum.at(), 0), ((sum * y).at(), 1)];
    let Some(code) = MachineCode::of(CodeBody::new(f.steps(), &stores, 2)) else { return };
    let (mut a, mut b) = ([1f32; 11], [2f32; 11]);
    // SAFETY: rows of 11 elements.
    unsafe { code.run(&[a.as_mut_ptr(), b.as_mut_ptr()], 11) };
    assert_eq!((a, b), ([3.0; 11], [6.0; 11]));
}

#[test]
#[cfg_attr(miri, ignore)]
fn equal_bodies_share_code() {
    let body = || {
        let f = Formula::default();
        let x = f.operand(0) * 3.5;
        CodeBody::new(f.steps(), &[(x.at(), 1)], 2)
    };
    let (Some(a), Some(b)) = (MachineCode::of(body()), MachineCode::of(body())) else { return };
    assert!(Arc::ptr_eq(&a, &b));
}
