import ArgumentParser
import MediaCore
import Threading

/// Compares our conversions with one call of libyuv, in one thread, by turns and in the same memory.
struct ConversionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "conversions",
        abstract: "CPU time of a conversion, scaling or turn, and of libyuv's call for the same."
    )

    @Argument(help: "The size of the pictures, as 1280x720; both sides even.")
    var size: String

    @Option(help: "Rounds of each case.")
    var rounds = 15

    @Option(help: "The least CPU time of a side in a round, in milliseconds.")
    var milliseconds = 10

    @Option(help: "Measures only the cases whose name contains this.")
    var only: String?

    @Option(help: "A JPEG picture of the size; without it, JPEG is left out.")
    var jpeg: String?

    private struct Round: Encodable {
        var name: String
        var size: String
        var round: Int
        var ours: Double
        var bare: Double
        var isSame: Bool

        enum CodingKeys: String, CodingKey {
            case name = "case"
            case size, round
            case ours = "ours_us"
            case bare = "bare_us"
            case isSame = "same"
        }
    }

    func run() throws {
        let sides = size.split(separator: "x").compactMap { Int($0) }
        guard sides.count == 2, sides.allSatisfy({ $0 > 0 && $0.isMultiple(of: 2) }) else {
            throw ValidationError("\(size) is no size with even sides, such as 1280x720.")
        }
        let cases = try ConversionCase.all(Dimensions(width: sides[0], height: sides[1]), jpeg: jpeg)
        for conversion in cases where only.map(conversion.name.contains) ?? true { try measure(conversion) }
    }

    private func measure(_ conversion: ConversionCase) throws {
        let isSame = try conversion.isSame()
        let calls = try callsInRound(conversion)
        for round in 0..<rounds {
            // The frame's buffer is the only one of its pool: both sides write the same memory.
            let buffer = try conversion.ours().buffer
            let (ours, bare): (Double, Double)
            if round.isMultiple(of: 2) {
                ours = try oursTime(conversion, calls, releasing: buffer)
                bare = bareTime(conversion, calls, into: try conversion.ours().buffer)
            } else {
                bare = bareTime(conversion, calls, into: buffer)
                ours = try oursTime(conversion, calls, releasing: buffer)
            }
            try report(
                Round(name: conversion.name, size: size, round: round, ours: ours, bare: bare, isSame: isSame)
            )
        }
    }

    /// As many calls as take the round's time.
    private func callsInRound(_ conversion: ConversionCase) throws -> Int {
        let buffer = try conversion.ours().buffer
        _ = bareTime(conversion, 4, into: buffer)
        return max(4, Int(Double(milliseconds) * 1000 / bareTime(conversion, 8, into: buffer)))
    }

    /// Microseconds of a call of ours.
    private func oursTime(
        _ conversion: ConversionCase,
        _ calls: Int,
        releasing buffer: consuming VideoBuffer
    ) throws -> Double {
        _ = consume buffer
        let before = MonotonicClock.threadCPUTime
        for _ in 0..<calls { _ = try conversion.ours() }
        return (MonotonicClock.threadCPUTime - before).milliseconds * 1000 / Double(calls)
    }

    /// Microseconds of a call of libyuv.
    private func bareTime(_ conversion: ConversionCase, _ calls: Int, into buffer: VideoBuffer) -> Double {
        let target = BareTarget(buffer)
        let before = MonotonicClock.threadCPUTime
        for _ in 0..<calls { conversion.bare(target) }
        return (MonotonicClock.threadCPUTime - before).milliseconds * 1000 / Double(calls)
    }
}
