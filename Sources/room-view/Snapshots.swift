import Foundation
import RoomKit

extension RoomSession {
    /// Writes pictures as PNG files into the working directory, in the background, and says so in the window.
    func save(_ pictures: [(frame: VideoFrame, track: RemoteVideoTrack)]) {
        guard !pictures.isEmpty else { return notify("There is no picture to write yet.") }
        let style = Date.ISO8601FormatStyle(dateSeparator: .omitted, timeSeparator: .omitted)
        let time = Date.now.formatted(style)
        Task.detached { [self] in
            do {
                let paths = try pictures.enumerated().map { index, picture in
                    let name = "\(picture.track.publisherIdentity)-\(picture.track.name)".map(Self.plain)
                    let path = "\(String(name.prefix(100)))-\(time)-\(index + 1).png"
                    try PNGSnapshotRenderer(path: path).render(picture.frame)
                    return path
                }
                let others = paths.count > 1 ? " and \(paths.count - 1) more" : ""
                notify("Wrote \(paths[0])\(others)")
            } catch {
                complain("\(error)")
                notify("\(error)")
            }
        }
    }

    /// A character that every file system takes.
    private static func plain(_ character: Character) -> Character {
        character.isASCII && (character.isLetter || character.isNumber) || "-_".contains(character) ? character : "_"
    }
}
