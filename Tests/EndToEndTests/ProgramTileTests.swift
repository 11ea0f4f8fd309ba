import Glibc
import MediaCore
import RoomKit
import TestSupport
import TestTools
import Testing
import Tiles

/// What a window asks of the publishers, seen at the publishers.
@Suite("A window receives what it shows", .enabled(if: Program.isAllowed), .timeLimit(.minutes(4)))
struct ProgramTileTests {
    private let large = Dimensions(width: 1280, height: 720)
    private let theatre: WindowStage

    init() async throws {
        theatre = try await WindowStage()
    }

    private func publishers() async throws -> [ColourPublisher] {
        var publishers: [ColourPublisher] = []
        for (name, colour) in [("left", 0xB03030 as UInt32), ("right", 0x3050C0)] {
            publishers.append(try await ColourPublisher(name, colour, size: large, on: theatre.stage))
        }
        return publishers
    }

    /// Waits until a publisher encodes nothing larger than half its own width, or its own size again.
    private func sends(_ publisher: ColourPublisher, halved: Bool, _ what: String) async throws {
        try await eventually("\(what): \(halved ? "small" : "large") pictures") {
            let before = publisher.track.statistics.layers
            try await eventually("ten pictures") { encoded(publisher) >= before.map(\.framesEncoded).reduce(10, +) }
            let busy = zip(before, publisher.track.statistics.layers).filter { $1.framesEncoded > $0.framesEncoded }
            return busy.compactMap { $1.dimensions?.width }.max() == (halved ? large.width / 2 : large.width)
        }
    }

    /// The frames that were encoded, of all encodings.
    private func encoded(_ publisher: ColourPublisher) -> Int {
        publisher.track.statistics.layers.map(\.framesEncoded).reduce(0, +)
    }

    @Test("Publishers send pictures as large as the tiles, and none for a tile that is hidden")
    func tiles() async throws {
        let publishers = try await publishers()
        let view = try await theatre.view(["--full-screen"])
        for publisher in publishers { try await sends(publisher, halved: true, "both") }
        try await theatre.press("1")
        try await theatre.shows(0xB03030, in: PixelArea(whole: WindowStage.screenSize), "one alone")
        try await sends(publishers[0], halved: false, "one alone")
        try await eventually("the hidden one encodes nothing") {
            let before = (encoded(publishers[0]), encoded(publishers[1]))
            try await eventually("ten pictures") { encoded(publishers[0]) >= before.0 + 10 }
            return encoded(publishers[1]) == before.1
        }
        try await theatre.press("0")
        let places = TileLayout(of: [large, large], in: WindowStage.screenSize, gap: 8).pictures
        try await theatre.shows(0x3050C0, in: places[1], "the hidden one is shown again")
        for publisher in publishers { try await sends(publisher, halved: true, "both again") }
        #expect(try await end([view], with: SIGTERM) == [.exit(0)])
        for publisher in publishers { await publisher.leave() }
        await theatre.close()
    }

    // The picture of before it was hidden would be shown, however old.
    @Test("A tile that is shown again has no picture until a new one comes")
    func noOldPicture() async throws {
        let options = ["--url", theatre.stage.url, "--room", "stage", "--identity"]
        let left = try await ColourPublisher("left", 0xB03030, size: large, on: theatre.stage)
        let view = try await theatre.view(["--full-screen"])
        try await theatre.shows(0xB03030, in: PixelArea(whole: WindowStage.screenSize), "the first track")
        let pattern = ["--source", "pattern", "--size", "640x360"]
        let right = try theatre.run("room-client", ["connect"] + options + ["right"] + pattern)
        let place = TileLayout(of: [large, large], in: WindowStage.screenSize, gap: 8).pictures[1]
        let empty: UInt32 = 0x1E2026
        func isShown() -> Bool {
            let (column, row) = (place.column + place.dimensions.width / 2, place.row + place.dimensions.height / 2)
            guard let pixel = theatre.picture?.pixel(column, row) else { return false }
            return [empty, 0xB03030].allSatisfy { !pixel.isNear(Pixel($0), within: 12) }
        }
        try await eventually("the pattern is there") { isShown() && right.isRunning }
        try await theatre.press("1")
        try await theatre.shows(0xB03030, in: PixelArea(whole: WindowStage.screenSize), "the first alone")
        try await Task.sleep(for: .seconds(1))
        right.send(SIGSTOP)
        try await theatre.press("0")
        try await theatre.shows(empty, in: place, "a tile without a picture")
        right.send(SIGCONT)
        try await eventually("pictures come again") { isShown() }
        #expect(try await end([view, right], with: SIGTERM).first == .exit(0))
        await left.leave()
        await theatre.close()
    }

    @Test("With --full-size, publishers send all that they have")
    func fullSize() async throws {
        let publishers = try await publishers()
        let view = try await theatre.view(["--full-screen", "--full-size"])
        for publisher in publishers { try await sends(publisher, halved: false, "both") }
        try await theatre.press("1")
        let before = encoded(publishers[1])
        try await eventually("the hidden one goes on") { encoded(publishers[1]) > before + 50 }
        try await sends(publishers[1], halved: false, "the hidden one")
        #expect(try await end([view], with: SIGTERM) == [.exit(0)])
        for publisher in publishers { await publisher.leave() }
        await theatre.close()
    }
}
