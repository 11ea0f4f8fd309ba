import AdaptationSimulation
import MediaCore
import TestTools
import Testing

@testable import Adaptation

@Suite struct AdaptationLogTests {
    private static func recorded(_ seed: UInt64) -> AdaptationLog {
        var flow = SimulatedFlow.Configuration()
        flow.seed = seed
        flow.settings.rate.startRate = 437_123.25
        flow.wishes = [
            .init(from: 5, nil), .init(from: 6, LayerBounds(bitrate: .kilobitsPerSecond(500), temporalLayers: 2)),
            .init(from: 9, LayerBounds(frameRate: FrameRate(numerator: 30_000, denominator: 2002))),
        ]
        let trace = LinkTrace.markov(seed: seed, seconds: 15)
        let result = LinkSimulation.run(trace, seconds: 15, flows: [flow], log: true)[0]
        return AdaptationLog(settings: flow.settings, entries: result.takeLog())
    }

    @Test("The rate has a reason: it grows, stands at its limit, a queue cuts it, it returns")
    func rateReasons() {
        var flow = SimulatedFlow.Configuration()
        flow.delay = 50
        let trace = LinkTrace([
            LinkTrace.Stretch(4, seconds: 10), LinkTrace.Stretch(0.5, seconds: 10), LinkTrace.Stretch(4, seconds: 10),
        ])
        let result = LinkSimulation.run(trace, seconds: 30, flows: [flow], log: true)[0]
        var replay = UplinkReplay(AdaptationLog(settings: flow.settings, entries: result.takeLog()))
        var reasons: [Int64: Set<RateReason>] = [:]
        while let step = replay.next() {
            reasons[step.entry.time / 1_000_000, default: []].insert(step.rateReason)
            if step.rateReason == .highestRate { #expect(replay.controller.status.rate >= .kilobitsPerSecond(2500)) }
        }
        #expect(reasons[0]?.isSuperset(of: [.start, .growth]) == true)
        #expect(reasons[8] == [.highestRate])
        #expect(reasons[10]?.contains(.queue) == true)
        #expect((11...19).contains { reasons[$0]?.contains(.recovery) == true })
        #expect(reasons[20] == [.growth])
        #expect(reasons[28] == [.highestRate])
    }

    @Test("A recorded run, written and read, replays to the same decisions", arguments: UInt64(1)...6)
    func replay(seed: UInt64) throws {
        let log = Self.recorded(seed)
        let read = try AdaptationLog(reading: Array(log.text.utf8))
        #expect(read == log)
        var replay = UplinkReplay(read)
        var decisions = 0
        while let step = replay.next() {
            #expect(step.isSame)
            if step.decision != nil { decisions += 1 }
        }
        #expect(decisions > 200)
    }

    @Test("A log states every setting that decides anything")
    func everySetting() {
        func count(_ value: Any) -> Int {
            let children = Mirror(reflecting: value).children
            return children.isEmpty ? 1 : children.reduce(0) { $0 + count($1.value) }
        }
        // All but `mostRecords`.
        #expect(UplinkController.Settings.fields.count == count(UplinkController.Settings()) - 1)
        #expect(Set(UplinkController.Settings.fields.map(\.name)).count == UplinkController.Settings.fields.count)
    }

    @Test("Another setting makes other decisions, and the replay shows it")
    func otherSettings() {
        var log = Self.recorded(1)
        log.settings.rate.targetQueue /= 2
        var replay = UplinkReplay(log)
        var differences = 0
        while let step = replay.next() { if !step.isSame { differences += 1 } }
        #expect(differences > 0)
    }

    @Test("A log that is cut off anywhere says so")
    func cutOff() throws {
        let log = Self.recorded(2)
        let bytes = Array(AdaptationLog(settings: log.settings, entries: Array(log.entries.prefix(200))).text.utf8)
        for count in 0..<bytes.count {
            #expect(throws: AdaptationLog.Malformed.self) { try AdaptationLog(reading: Array(bytes[..<count])) }
        }
        let half = try AdaptationLog(reading: Array(bytes[..<(bytes.count * 3 / 4)]), acceptsCutOff: true)
        #expect(!half.entries.isEmpty)
        #expect(half.entries == Array(log.entries.prefix(half.entries.count)))
    }

    @Test(
        "Each error names the line and what is wrong there",
        arguments: [
            ("", "The file is no adaptation log: it does not begin with “room adaptation log”."),
            ("RIFF....", "The file is no adaptation log: it does not begin with “room adaptation log”."),
            ("room adaptation log 9\n", "The log has version 9; this program reads version 1."),
            ("room adaptation log 1\nsettings\n5 jump 3\nend 1\n", "Line 3 of the log: “jump” is no input."),
            ("room adaptation log 1\nsettings\nx wrote 3\nend 1\n", "Line 3 of the log: “x” is no time."),
            ("room adaptation log 1\nsettings\n5 wrote\nend 1\n", "Line 3 of the log: a field is missing."),
            ("room adaptation log 1\nsettings\n5 wrote 1 2\nend 1\n", "Line 3 of the log: the line is too long."),
            ("room adaptation log 1\nsettings a=b\nend 0\n", "Line 2 of the log: “a=b” is no setting."),
            ("room adaptation log 1\nsettings\n5 wrote 1\nend 2\n", "The log says that it has 2 inputs, but it has 1."),
            ("room adaptation log 1\nsettings\n", "The log is cut off after line 2: the line that ends it is missing."),
            ("room adaptation log 1\nsettings\nend 0\n1 wrote 2\n", "Line 3 of the log: something follows the end."),
        ]
    )
    func errors(text: String, error: String) {
        #expect {
            try AdaptationLog(reading: Array(text.utf8))
        } throws: {
            "\($0)" == error
        }
    }

    @Test("Any bytes are read or refused, and what is read can be replayed", arguments: UInt64(0)..<100)
    func anyBytes(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var bytes = Array(Self.sample.utf8)
        for _ in 0..<Int.random(in: 1...6, using: &random) {
            let index = Int.random(in: 0..<bytes.count, using: &random)
            switch Int.random(in: 0..<3, using: &random) {
            case 0: bytes[index] = .random(in: 0...255, using: &random)
            case 1: bytes[index] = UInt8(ascii: "9")
            default: bytes.insert(contentsOf: Array("999999999999".utf8.prefix(.random(in: 1...12))), at: index)
            }
        }
        guard let log = try? AdaptationLog(reading: bytes, acceptsCutOff: true) else { return }
        var replay = UplinkReplay(log)
        var steps = 0
        while replay.next() != nil { steps += 1 }
        #expect(steps == log.entries.count)
    }

    private static let sample: String = {
        let log = recorded(3)
        return AdaptationLog(settings: log.settings, entries: Array(log.entries.prefix(300))).text
    }()
}
