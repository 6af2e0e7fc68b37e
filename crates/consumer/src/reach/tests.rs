use tokio::time::sleep;

use super::*;

const MOST: Duration = Duration::from_secs(25);

fn one() -> (Arc<Reach>, Reaches) {
    let reach = Reach::new("the handler".to_owned(), MOST);
    (reach.clone(), Reaches::new(vec![reach]))
}

/// What `begin` gives when it lets the handler run.
fn run(reach: &Arc<Reach>) -> Option<Probe> {
    match reach.begin() {
        Begin::Run(probe) => probe,
        Begin::Wait(wait) => panic!("it may not begin for {wait:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn ten_minutes_of_refused_connections_cost_few_tries_and_end_within_half_a_minute() {
    let (reach, all) = one();
    let (start, outage) = (Instant::now(), Duration::from_secs(600));
    // 16 handlers had begun when it went down.
    for _ in 0..16 {
        assert!(run(&reach).is_none());
    }
    let mut tries = 16;
    for _ in 0..16 {
        let again = reach.failed("connection refused", None);
        assert!(again <= Duration::from_secs(5), "{again:?}");
    }
    let back = loop {
        sleep(Duration::from_millis(250)).await;
        match all.read_on() {
            ReadOn::All => panic!("nobody came through"),
            ReadOn::Nothing => {
                // A reader that was blocked meanwhile: what it brings is handed back.
                assert!(matches!(reach.begin(), Begin::Wait(wait) if wait <= MOST + Duration::from_secs(1)));
            }
            ReadOn::One => {
                let probe = run(&reach);
                assert!(probe.is_some());
                assert_eq!(all.read_on(), ReadOn::Nothing, "one probe at a time");
                tries += 1;
                if start.elapsed() >= outage {
                    reach.reached(probe);
                    break start.elapsed();
                }
                reach.failed("connection refused", probe);
                assert_eq!(all.read_on(), ReadOn::Nothing, "the next one is later");
            }
        }
    };
    assert!(tries < 60, "{tries} tries");
    assert!(back < outage + Duration::from_secs(30), "{back:?}");
    assert_eq!((all.read_on(), all.gauge(), all.trouble().as_str()), (ReadOn::All, 1.0, ""));
    assert!(run(&reach).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_dropped_leaves_its_place_to_another() {
    let (reach, all) = one();
    reach.failed("no route", None);
    sleep(Duration::from_secs(1)).await;
    drop(run(&reach));
    assert_eq!(all.read_on(), ReadOn::One);
    assert!(run(&reach).is_some());
}

#[tokio::test(start_paused = true)]
async fn who_had_begun_before_it_went_down_neither_ends_nor_lengthens_the_outage() {
    let (reach, all) = one();
    reach.failed("no route", None);
    sleep(Duration::from_millis(700)).await;
    reach.reached(None);
    reach.failed("no route", None);
    assert_eq!((all.read_on(), all.gauge()), (ReadOn::Nothing, 0.0));
    sleep(Duration::from_millis(300)).await;
    assert_eq!(all.read_on(), ReadOn::One);
    assert!(all.trouble().contains("the handler has been down for 1s: no route"), "{}", all.trouble());
}

#[tokio::test(start_paused = true)]
async fn a_halt_is_for_good_and_one_route_alone_stops_nobody_else() {
    let (halted, other) = (Reach::new("a".to_owned(), MOST), Reach::new("b".to_owned(), MOST));
    let all = Reaches::new(vec![halted.clone(), other.clone()]);
    halted.halt("410 Gone", None);
    halted.failed("no route", None);
    assert_eq!((all.read_on(), all.gauge()), (ReadOn::All, -1.0));
    sleep(Duration::from_secs(3600)).await;
    assert!(matches!(halted.begin(), Begin::Wait(wait) if wait >= MOST));
    assert!(run(&other).is_none());
    other.halt("410 Gone", None);
    assert_eq!(all.read_on(), ReadOn::Nothing);
    assert!(all.trouble().contains("a has been halted for 3600s: "), "{}", all.trouble());
}
