import MediaCore
import RelayCore
import RoomProtocol
import Testing

/// A path that was too thin for a moment and is good again, as after a hiccup of a busy machine.
///
/// Its limit is still known, and the viewer acknowledges less and less, without a timer: what came between two of its
/// acknowledgements stays unacknowledged until something else comes.
@Suite("Relay: a path that was the limit for a moment", .timeLimit(.minutes(2)))
struct MomentaryLimitTests {
    // The limit made frames wait until what came before was acknowledged, which the viewer did with the next frame.
    @Test(
        "No frame waits for an acknowledgement that only the next frame would bring",
        arguments: [33, 67, 83, 200],
        [250, 500, 1000, 3000]
    )
    func fewerFrames(before: Int, after: Int) throws {
        for countsParts in [false, true] {
            for phase in stride(from: 1200, through: 2000, by: 90) {
                let viewer = try room(before: before, after: after, phase: phase, countsParts: countsParts)
                let late = viewer.frames.filter { $0.time > 14_000 }
                let oldest = late.map(\.age).max() ?? .infinity
                // A frame that comes right behind a large one waits as long as that one takes at the known limit.
                #expect(oldest < 250, "\(oldest) ms, phase \(phase), counts parts: \(countsParts)")
                #expect(late.count >= 12_000 / after, "\(late.count) frames, phase \(phase), \(countsParts)")
            }
        }
    }

    // Only the next frame made the relay look again. It brought the acknowledgements of those, too, and the
    // silence before that counted as a stall, which took the rate from 500 to 60 kbit/s: frames were left out.
    @Test("Frames right behind each other wait no longer than the known limit asks for", arguments: [33, 83])
    func bursts(before: Int) throws {
        for phase in stride(from: 1200, through: 2000, by: 90) {
            var room = try limitedRoom(before: before, phase: phase, countsParts: true)
            room.frameInterval = .max
            for _ in 0..<10 {
                room.run(970)
                for _ in 0..<3 {
                    room.camera.bytesPerFrame = 8000
                    room.bench.frame(room.camera)
                    room.run(10)
                }
            }
            room.run(900)
            let late = room.viewers[0].frames.suffix(30)
            let oldest = late.map(\.age).max() ?? .infinity
            let numbers = late.map { Int($0.number) }
            #expect(zip(numbers.dropFirst(), numbers).allSatisfy { $0 - $1 == 1 }, "\(numbers), phase \(phase)")
            #expect(oldest < 250, "\(oldest) ms, phase \(phase)")
        }
    }

    private func room(before: Int, after: Int, phase: Int, countsParts: Bool) throws -> EmulatedViewer {
        var room = try limitedRoom(before: before, phase: phase, countsParts: countsParts)
        room.frameInterval = after
        room.run(12_500)
        return room.viewers[0]
    }

    /// A room with a viewer whose path was too thin for 3 s, until `phase` and 2 s ago.
    private func limitedRoom(before: Int, phase: Int, countsParts: Bool) throws -> EmulatedRoom {
        var room = try EmulatedRoom(cap: 300_000) { bench in
            [
                EmulatedViewer(
                    bench,
                    "viewer",
                    bitsPerSecond: 20_000_000,
                    delay: .milliseconds(1),
                    countsParts: countsParts
                )
            ]
        }
        room.frameInterval = before
        room.run(8000)
        room.viewers[0].bitsPerSecond = 200_000
        room.run(3000)
        room.viewers[0].bitsPerSecond = 20_000_000
        room.run(2000 + phase)
        return room
    }
}
