import Testing

@testable import Adaptation

/// What becomes of a queue that stays although the path seems to carry more than is sent; values.
@Suite("A queue that stays")
struct PersistentQueueTests {
    /// The rate after `seconds` in which a path delivers `carried` bits per second and seems to deliver `active`.
    ///
    /// The queue is `queue` µs long, and empty for a moment every `pause` µs.
    private func rate(
        after seconds: Double,
        carried: Double = 200_000,
        active: Double = 550_000,
        queue: Int64 = 200_000,
        emptyEvery pause: Int64 = .max,
        _ settings: RateController.Settings = RateController.Settings()
    ) -> Double {
        var controller = RateController(settings)
        let step: Int64 = 50_000
        for index in 0..<Int64(seconds * 1e6) / step {
            let isEmpty = index * step % pause == 0 && index > 0
            controller.update(
                PathEstimator.Sample(
                    queue: isEmpty ? 0 : queue,
                    standingQueue: isEmpty ? 0 : queue,
                    bytes: Int64(carried / 8e6 * Double(index * step)),
                    deliveryRate: active,
                    activeRate: active
                ),
                roundTrip: 100_000,
                at: index * step
            )
        }
        return controller.rate
    }

    @Test(
        "The rate goes below what is delivered, whatever the path seems to deliver",
        arguments: [80_000, 200_000, 900_000]
    )
    func cut(carried: Double) {
        #expect(rate(after: 1.4, carried: carried, active: 3 * carried) > 0.5 * min(600_000, carried))
        let settled = rate(after: 2.5, carried: carried, active: 3 * carried)
        #expect(settled <= carried && settled > 0.5 * min(600_000, carried))
        var settings = RateController.Settings()
        settings.persistence = 0
        // This is what happened without it.
        guard carried < 500_000 else { return }
        #expect(rate(after: 4, carried: carried, active: 3 * carried, settings) > 1.2 * carried)
    }

    // From 1.9 Mbit/s to 60 kbit/s: the whole silence was counted, and the rate of before it was forgotten.
    @Test(
        "A silence in which nothing is known is no time of a queue",
        arguments: [0.7, 3, 10, 60],
        [true, false]
    )
    func silence(seconds: Double, isStall: Bool) {
        var controller = RateController()
        var bytes: Int64 = 0
        var now: Int64 = 0
        func sample(queue: Int64, isAfterStall: Bool = false) -> PathEstimator.Sample {
            bytes += 12_500
            return PathEstimator.Sample(
                queue: queue,
                standingQueue: queue,
                bytes: bytes,
                deliveryRate: 2_000_000,
                activeRate: 2_000_000,
                isAfterStall: isAfterStall
            )
        }
        for index in 0..<400 {
            now += 50_000
            controller.update(sample(queue: index < 398 ? 10_000 : 90_000), roundTrip: 100_000, at: now)
        }
        let before = controller.rate
        now += Int64(seconds * 1e6)
        if isStall { controller.update(sample(queue: 0, isAfterStall: true), roundTrip: 100_000, at: now) }
        for _ in 0..<4 {
            now += 50_000
            controller.update(sample(queue: 90_000), roundTrip: 100_000, at: now)
        }
        #expect(before > 1_000_000 && controller.rate > 0.6 * before, "\(before) \(controller.rate)")
    }

    @Test("A queue that drains in between says nothing of the kind")
    func draining() {
        #expect(rate(after: 10, emptyEvery: 1_000_000) > 250_000)
    }
}
