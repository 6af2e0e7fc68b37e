use super::*;

/// A track that is read once a second.
struct Scene {
    track: Track,
    start: Instant,
    now_ms: u64,
    keys: u64,
    ended: u64,
}

/// The node's clock at the first reading, milliseconds.
const EPOCH: u64 = 1_767_225_600_000;

fn scene(keys: u64) -> Scene {
    let mut scene = Scene { track: Track::default(), start: Instant::now(), now_ms: 0, keys, ended: 0 };
    assert_eq!(scene.read(0), None);
    scene
}

impl Scene {
    fn now(&self) -> Instant {
        self.start + Duration::from_millis(self.now_ms)
    }

    fn read(&mut self, after_ms: u64) -> Option<Sign> {
        self.now_ms += after_ms;
        self.read_run("first")
    }

    fn read_run(&mut self, run: &str) -> Option<Sign> {
        let position = (EPOCH + self.now_ms) * 1000 + 1;
        let (at, keys, ended) = (self.now(), self.keys, self.ended);
        self.track.read(Reading { at, position, keys, ended, run: run.to_owned() })
    }

    fn missing(&mut self, count: usize) -> Option<Sign> {
        let due_ms = EPOCH + self.now_ms;
        self.track.missing(self.now(), &vec![due_ms; count])
    }
}

#[test]
fn a_database_that_loses_most_of_its_keys_at_once_was_flushed() {
    let mut scene = scene(10_000);
    assert_eq!(scene.read(1_000), None);
    scene.keys = 0;
    assert_eq!(scene.read(5), Some(Sign::Shrank { from: 10_000, to: 0, explained: 0 }));
    assert_eq!(scene.read(1_000), None, "one flush is one sign");
}

#[test]
fn a_storm_of_expirations_is_no_flush() {
    let mut scene = scene(200_000);
    for _ in 0..20 {
        (scene.keys, scene.ended) = (scene.keys - 10_000, scene.ended + 10_000);
        assert_eq!(scene.read(300), None);
    }
    scene.keys = 0;
    assert_eq!(scene.read_run("first"), None, "a reading that comes second says nothing");
}

#[test]
fn a_small_loss_a_slow_loss_and_a_restart_are_no_flush() {
    let mut small = scene(150);
    small.keys = 50;
    assert_eq!(small.read(1_000), None);
    let mut slow = scene(10_000);
    for _ in 0..60 {
        slow.keys -= 110;
        assert_eq!(slow.read(1_500), None);
    }
    let mut restarted = scene(10_000);
    restarted.keys = 0;
    restarted.now_ms += 1_000;
    assert_eq!(restarted.read_run("second"), None);
    let mut silent = scene(10_000);
    silent.keys = 0;
    assert_eq!(silent.read(13_000), None, "we did not look for so long that anything may have happened");
}

#[test]
fn many_keys_missing_at_their_due_are_a_sign_before_the_first_of_them_fires() {
    let mut scene = scene(1_000_000);
    scene.track.nudged(scene.now(), 256, 0);
    assert_eq!(scene.missing(101), None, "less than half of those nudged");
    assert_eq!(scene.missing(28), Some(Sign::Missing { keys: 129, nudged: 256 }));
    scene.read(11_000);
    assert_eq!(scene.missing(100), None, "another window, and too few");
}

#[test]
fn missing_keys_that_the_server_has_expired_are_no_sign() {
    let mut scene = scene(100_000);
    scene.track.nudged(scene.now(), 1_000, 300);
    scene.ended = 1_000;
    scene.read(600);
    assert_eq!(scene.missing(700), None, "notifications are off, and others were quicker");
    assert_eq!(scene.missing(500), None, "and as many were deleted");
    assert_eq!(scene.missing(1), Some(Sign::Missing { keys: 501, nudged: 1_000 }));
}

#[test]
fn keys_deleted_in_a_gap_are_no_sign_when_as_many_expired_unheard() {
    let mut scene = scene(100_000);
    scene.track.nudged(scene.now(), 608, 80);
    scene.ended = 288;
    scene.read(600);
    assert_eq!(scene.missing(368), None);
}

#[test]
fn a_reading_that_lags_behind_the_proofs_is_no_sign() {
    let mut scene = scene(100_000);
    scene.track.nudged(scene.now(), 1_000, 1_000);
    assert_eq!(scene.missing(101), None);
}

#[test]
fn what_was_due_before_we_looked_is_no_sign() {
    let mut scene = scene(10_000);
    let before = vec![EPOCH - 1; 5_000];
    scene.track.nudged(scene.now(), 5_000, 0);
    assert_eq!(scene.track.missing(scene.now(), &before), None);
    scene.now_ms += 1_000;
    assert_eq!(scene.read_run("second"), None);
    scene.now_ms -= 500;
    assert_eq!(scene.missing(5_000), None, "due before the server was started");
}

#[test]
fn the_state_ends_when_the_walk_and_ten_quiet_seconds_are_over() {
    let mut scene = scene(1);
    assert!(scene.track.declare(scene.now()));
    let later = |seconds| scene.start + Duration::from_secs(seconds);
    assert!(!scene.track.end(later(60)), "the walk is under way");
    scene.track.walked();
    assert!(!scene.track.declare(later(60)), "it is one flush");
    assert!(!scene.track.end(later(69)) && scene.track.is_flushed());
    assert!(scene.track.end(later(70)) && !scene.track.is_flushed());
    assert!(!scene.track.end(later(71)));
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut scene = scene(1_000);
    for _ in 0..100_000 {
        scene.read(1);
        scene.track.nudged(scene.now(), 1, 1);
        scene.missing(1);
    }
    assert!(scene.track.readings.len() <= 30, "{}", scene.track.readings.len());
    assert!(scene.track.counts.len() <= 30, "{}", scene.track.counts.len());
}
