import ArgumentParser
import Testing

@testable import room_client

@Suite("The options for the source")
struct SourceOptionTests {
    // A slate was promised for windows, which have none, and with `--camera-wait 0`, which turns slates off.
    @Test(
        "The message about an interruption states what viewers see",
        arguments: [
            ([], true, "A slate is shown meanwhile."), (["--camera-wait", "30"], true, "A slate is shown meanwhile."),
            (["--camera-wait", "0"], true, "Nothing is sent meanwhile."),
            (["--source", "screen"], true, "The last picture is shown meanwhile."),
            (["--source", "screen"], false, "Nothing is sent meanwhile."),
        ]
    )
    func interruption(arguments: [String], hasPictures: Bool, words: String) throws {
        #expect(try SourceOptions.parse(arguments).shownMeanwhile(hasPictures: hasPictures) == words)
    }

    // `--window ""`, of a script whose variable is not set, captured the only window, whatever it showed.
    @Test("An empty name is refused", arguments: ["--window", "--monitor", "--display", "--device"])
    func emptyNames(option: String) {
        let source = option == "--device" ? "camera" : "screen"
        let error = #expect(throws: (any Error).self) {
            try RoomClientCommand.parseAsRoot(["connect", "--room", "r", "--source", source, option, ""])
        }
        #expect(error.map { RoomClientCommand.message(for: $0).contains("it is empty") } == true)
    }
}
